//! Requests, and what is on record of them.

use std::time::Duration;

use axum::{
    body::{Body, Bytes},
    http::{Request, header},
};
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use tower::ServiceExt;
use tower_idempotency::{key, sql::message_log::MessageFilter};

use super::service::{Service, request, send};
use crate::database::TestDatabase;

pub(crate) async fn every_try_is_on_record<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let app = service.app(service.layer());
    assert_eq!(send(&app, request("a"), "7 EUR").await.0, 201);
    assert_eq!(send(&app, request("a"), "7 EUR").await.0, 201, "a duplicate");
    assert_eq!(send(&app, request("a"), "8 EUR").await.0, 422, "another content");
    assert_eq!(send(&app, Request::post("/pay/7"), "7 EUR").await.0, 400, "no key");
    assert_eq!(service.effects().await, 1);
    let messages = service.messages().await;
    let on_record: Vec<_> = messages.iter().map(|logged| (logged.status.unwrap(), &logged.message.body[..])).collect();
    assert_eq!(on_record, [(201, &b"7 EUR"[..]), (201, b"7 EUR"), (422, b"8 EUR"), (400, b"7 EUR")]);
    assert_eq!(service.log.list(&MessageFilter::new().key("a"), 10).await.unwrap().len(), 3);
    // The handler knows which message is its own.
    assert_eq!(service.seen(), [("7 EUR".to_owned(), Some(messages[0].message.id.clone()))]);
}

pub(crate) async fn what_is_written_of_a_request<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let app = service.app(service.layer());
    let sent = request("a")
        .header("x-signature", "5f0c")
        .header("authorization", "Bearer hidden")
        .header("proxy-authorization", "hidden")
        .header("cookie", "session=hidden")
        .header("x-api-key", "hidden");
    assert_eq!(send(&app, sent, "7 EUR").await.0, 201);
    let message = service.message().await.message;
    assert_eq!((&*message.route, &*message.method, &*message.path), ("/pay/{order}", "POST", "/pay/7?currency=EUR"));
    assert_eq!(message.key_digest, Some(Sha256::digest("a").into()));
    let names: Vec<_> = message.headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["idempotency-key", "x-signature"]);
    assert_eq!(message.headers[1].1, "5f0c");
    assert!(!message.is_cut);
}

pub(crate) async fn headers_and_queries_as_one_chooses<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let layer = service.layer().include_header(header::AUTHORIZATION).exclude_header(header::USER_AGENT);
    let app = service.app(layer.route("payments").without_query());
    let sent = request("a").header("authorization", "Bearer shown").header("user-agent", "curl");
    assert_eq!(send(&app, sent, "").await.0, 201);
    let message = service.message().await.message;
    assert_eq!((&*message.route, &*message.path), ("payments", "/pay/7"));
    let names: Vec<_> = message.headers.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["idempotency-key", "authorization"]);
}

pub(crate) async fn a_long_body_is_cut_and_passed_on_whole<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let app = service.app(tower_idempotency::MessageLogLayer::new(service.log.clone().body_limit(1000)));
    let long = "x".repeat(100_000);
    let chunks = long.as_bytes().chunks(600).map(|chunk| Ok::<_, std::io::Error>(Bytes::copy_from_slice(chunk)));
    let chunks: Vec<_> = chunks.collect();
    assert_eq!(send(&app, request("a"), Body::from_stream(futures_util::stream::iter(chunks))).await.0, 201);
    let message = service.message().await.message;
    assert_eq!((message.body.len(), message.is_cut), (1000, true));
    assert_eq!(service.seen()[0].0.len(), 100_000);
}

pub(crate) async fn a_body_that_breaks_is_on_record<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let app = service.app(service.layer());
    let frames = [Ok(Bytes::from("7 E")), Err(std::io::Error::other("broken"))];
    let (status, problem) = send(&app, request("a"), Body::from_stream(futures_util::stream::iter(frames))).await;
    assert!(status == 400 && problem.contains("body-incomplete"), "{problem}");
    let logged = service.message().await;
    assert_eq!((&logged.message.body[..], logged.message.is_cut, logged.status), (&b"7 E"[..], true, Some(400)));
    assert!(service.seen().is_empty());
}

pub(crate) async fn a_key_in_the_body<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let app = service.app(service.layer().key(key::json("/order")));
    for (name, body, key) in [("a", r#"{"order":"order-7"}"#, Some("order-7")), ("b", "no JSON", None)] {
        assert_eq!(send(&app, request(name), body).await.0, 201);
        let message = service.messages().await.pop().unwrap().message;
        assert_eq!(message.key_digest, key.map(|key| Sha256::digest(key).into()));
    }
}

pub(crate) async fn what_is_rolled_back_is_on_record<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let app = service.app(service.layer());
    assert_eq!(send(&app, request("a").header("x-do", "409"), "7 EUR").await.0, 409);
    let logged = service.message().await;
    assert_eq!((logged.status, &logged.message.body[..]), (Some(409), &b"7 EUR"[..]));
    assert_eq!(service.effects().await, 0);
    let request = request("b").header("x-do", "panic").body(Body::from("8 EUR")).unwrap();
    assert!(tokio::spawn(app.oneshot(request)).await.unwrap_err().is_panic());
    let logged = service.messages().await.pop().unwrap();
    assert_eq!((logged.status, &logged.message.body[..]), (None, &b"8 EUR"[..]));
    assert_eq!(service.effects().await, 0);
}

pub(crate) async fn what_is_not_answered_has_no_status<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let app = service.app(service.layer());
    let request = request("a").header("x-do", "hang").body(Body::from("7 EUR")).unwrap();
    let sent = tokio::spawn(timeout(Duration::from_secs(60), app.oneshot(request)));
    while service.seen().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // It is there while the handler works.
    assert_eq!(service.message().await.status, None);
    sent.abort();
    assert!(sent.await.unwrap_err().is_cancelled());
    assert_eq!(service.message().await.status, None);
}

pub(crate) async fn without_answers<D: TestDatabase>() {
    let service = Service::<D>::start().await;
    let app = service.app(service.layer().without_answers());
    assert_eq!(send(&app, request("a"), "").await.0, 201);
    assert_eq!(service.message().await.status, None);
}
