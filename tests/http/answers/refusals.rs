//! How refusals look, and who says so.

use axum::{
    body::Bytes,
    http::{HeaderValue, Response, header},
};
use tower_idempotency::IdempotencyLayer;

use crate::{
    answers::lab::{Lab, Whole, as_it_is},
    common::{Seen, post, see},
};

/// A mismatch, behind a first request.
async fn refused(adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Whole {
    let lab = Lab::new(adjust, |_| "body");
    lab.ask().await;
    Whole::of(lab.send(post("/run", "k", "other")).await).await
}

#[tokio::test(start_paused = true)]
async fn a_problem_document() {
    let refused = refused(as_it_is).await;
    let problem: serde_json::Value = serde_json::from_slice(&refused.data).unwrap();
    assert_eq!(refused.status, 422);
    assert_eq!(problem["status"], 422);
    for member in ["type", "title", "detail"] {
        assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member} of {problem}");
    }
    let expected = [("content-type", "application/problem+json"), ("cache-control", "no-store")];
    assert_eq!(refused.fields, expected.map(|(name, value)| (name.to_owned(), value.into())));
}

#[tokio::test(start_paused = true)]
async fn the_base_of_its_type() {
    let refused = refused(|layer| layer.problem_base("https://example.com/errors?a=\"b\"")).await;
    let problem: serde_json::Value = serde_json::from_slice(&refused.data).unwrap();
    assert_eq!(problem["type"], "https://example.com/errors?a=\"b\"#key-reused");
}

#[tokio::test(start_paused = true)]
async fn rendered_by_the_application() {
    let refused = refused(|layer| {
        layer.render(|refusal| {
            let mut response = Response::new(Bytes::from(format!("<p>{}", refusal.name())));
            *response.status_mut() = refusal.status();
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
            response
        })
    })
    .await;
    assert_eq!((refused.status.as_u16(), &refused.data[..]), (422, &b"<p>key-reused"[..]));
    assert_eq!(refused.fields, [("content-type".to_owned(), b"text/html".to_vec())]);
}

#[tokio::test(start_paused = true)]
async fn a_problem_of_the_handlers_own_is_an_answer() {
    let lab = Lab::new(as_it_is, |_| ([("content-type", "application/problem+json")], "{\"type\":\"own\"}"));
    assert_eq!(see(lab.ask().await).await, Seen::first(200, "{\"type\":\"own\"}"));
    assert_eq!(see(lab.ask().await).await, Seen::replay(200, "{\"type\":\"own\"}"));
}
