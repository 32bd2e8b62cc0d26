//! A log that cannot be written.

use std::time::Duration;

use axum::http::{Response, StatusCode, header::RETRY_AFTER};
use bytes::Bytes;
use http_body_util::BodyExt;
use tower_idempotency::{MessageLogLayer, sql::message_log::MessageLog};

use super::service::{Service, answer, request, send};
use crate::database::TestDatabase;

async fn without_a_table<D: TestDatabase>() -> Service<D> {
    let service = Service::<D>::start().await;
    service.run("DROP TABLE idempotency_message_log").await;
    service
}

/// What is not on record does not take effect.
pub(crate) async fn a_log_that_is_away_refuses<D: TestDatabase>() {
    let service = without_a_table::<D>().await;
    let app = service.app(service.layer());
    let response = answer(&app, request("a"), "7 EUR").await;
    assert!(response.headers().contains_key(RETRY_AFTER));
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let problem = response.into_body().collect().await.unwrap().to_bytes();
    let problem = String::from_utf8(problem.to_vec()).unwrap();
    assert!(problem.contains("#not-logged\"") && problem.contains("\"retryable\":true"), "{problem}");
    assert!(service.seen().is_empty());
    assert_eq!(service.effects().await, 0);
    // Once it is there, the same request runs.
    service.log.migrate().await.unwrap();
    assert_eq!(send(&app, request("a"), "7 EUR").await.0, 201);
}

pub(crate) async fn a_log_that_hangs_refuses<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let pool = D::connect(&D::url(&service.place), 1).await;
    let _only = pool.acquire().await.unwrap();
    let layer = MessageLogLayer::new(MessageLog::new(pool.clone())).timeout(Duration::from_millis(50));
    let (status, problem) = send(&service.app(layer), request("a"), "7 EUR").await;
    assert!(status == 503 && problem.contains("not-logged"), "{problem}");
    assert!(service.seen().is_empty());
}

pub(crate) async fn in_words_of_ones_own<D: TestDatabase>() {
    let service = without_a_table::<D>().await;
    let layer = service.layer().render(|refusal| {
        let mut response = Response::new(Bytes::from_static(b"fail"));
        *response.status_mut() = refusal.status();
        response
    });
    assert_eq!(send(&service.app(layer), request("a"), "7 EUR").await, (503, "fail".to_owned()));
}

pub(crate) async fn going_on_without_a_log<D: TestDatabase>() {
    let service = without_a_table::<D>().await;
    let app = service.app(service.layer().fail_open());
    assert_eq!(send(&app, request("a"), "7 EUR").await.0, 201);
    assert_eq!(service.seen(), [("7 EUR".to_owned(), None)]);
    assert_eq!(service.effects().await, 1);
}

pub(crate) async fn an_answer_that_cannot_be_noted_is_sent<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    // The status has no place any more.
    service.run("ALTER TABLE idempotency_message_log RENAME COLUMN status TO other").await;
    let app = service.app(service.layer());
    assert_eq!(send(&app, request("a"), "7 EUR").await.0, 201);
    service.run("ALTER TABLE idempotency_message_log RENAME COLUMN other TO status").await;
    assert_eq!(service.message().await.status, None);
}
