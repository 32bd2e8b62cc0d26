//! Keys and scopes that a closure of the application's finds in the body.

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{StatusCode, request::Parts},
};
use tower_idempotency::{
    IdempotencyLayer,
    key::{self, KeyError},
    scope,
};

use crate::{
    answers::fixture::{Fixture, as_it_is},
    common::{Counter, Seen, frames::Frames, see},
};

/// `merchant/order/content`.
fn part(body: &[u8], at: usize) -> Option<String> {
    let part = body.split(|byte| *byte == b'/').nth(at)?;
    Some(String::from_utf8_lossy(part).into_owned())
}

fn order_number(_: &Parts, body: &Bytes) -> Result<Option<String>, KeyError> {
    match part(body, 1).as_deref() {
        Some("?") => Err(KeyError::malformed("the order number is a question")),
        number => Ok(number.map(str::to_owned)),
    }
}

fn by_order(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.key(key::from_body(order_number))
}

fn send(body: impl Into<Body>) -> Request {
    Request::post("/run").body(body.into()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_retry_is_known_by_what_is_in_its_body() {
    let fixture = Fixture::new(by_order, |_| "ordered");
    let order = async |body: &'static str| see(fixture.send(send(body)).await).await;
    assert_eq!(order("shop/7/chair").await, Seen::first(200, "ordered"));
    assert_eq!(order("shop/7/chair").await, Seen::replay(200, "ordered"));
    assert_eq!(order("shop/7/table").await.problem(), "key-reused");
    assert_eq!(order("shop/8/chair").await, Seen::first(200, "ordered"));
    assert_eq!(fixture.runs.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn keys_that_are_missing_or_invalid_are_refused() {
    let fixture = Fixture::new(by_order, |_| "ordered");
    for (body, problem) in [("shop", "key-missing"), ("shop//chair", "key-invalid"), ("shop/?/chair", "key-invalid")] {
        let refused = see(fixture.send(send(body)).await).await;
        assert_eq!((refused.status, refused.problem().as_str()), (StatusCode::BAD_REQUEST, problem), "{body}");
    }
    let refused = see(fixture.send(send("shop/?/chair")).await).await;
    assert!(refused.body.contains("the order number is a question"), "{refused:?}");
    assert_eq!(fixture.runs.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_closure_sees_whole_bodies_only() {
    let asked = Counter::default();
    let counted = asked.clone();
    let counting = move |parts: &Parts, body: &Bytes| {
        counted.next();
        order_number(parts, body)
    };
    let fixture = Fixture::new(|layer| layer.key(key::from_body(counting)).request_limit(16), |_| "ordered");
    let torn = see(fixture.send(send(Frames::of(["shop/7", "/chair"]).broken().boxed())).await).await;
    assert_eq!(torn.problem(), "body-incomplete");
    let long = see(fixture.send(send("shop/7/a long table")).await).await;
    assert_eq!((long.status, long.problem().as_str()), (StatusCode::PAYLOAD_TOO_LARGE, "body-too-large"));
    assert_eq!((asked.get(), fixture.runs.get()), (0, 0));

    let whole = see(fixture.send(send(Frames::of(["shop/7", "/chair"]).boxed())).await).await;
    assert_eq!(whole, Seen::first(200, "ordered"));
    assert_eq!(fixture.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_scope_in_the_body_keeps_merchants_apart() {
    let by_merchant = |layer| by_order(layer).scope(scope::from_body(|_, body| part(body, 0)));
    let fixture = Fixture::new(by_merchant, |_| "ordered");
    for merchant in ["a", "b"] {
        let order = async || see(fixture.send(send(format!("{merchant}/7/chair"))).await).await;
        assert_eq!(order().await, Seen::first(200, "ordered"));
        assert_eq!(order().await, Seen::replay(200, "ordered"));
    }
    assert_eq!(see(fixture.send(send("/7/chair")).await).await.problem(), "scope-missing");
}

#[tokio::test]
#[should_panic(expected = "`stream_body()` does not read the body, and key::from_body(..) is in the body")]
async fn a_body_that_streams_has_no_key_in_it() {
    let _ = Fixture::new(|layer| by_order(as_it_is(layer)).stream_body(), |_| "ordered");
}
