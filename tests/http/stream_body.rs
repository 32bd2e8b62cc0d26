//! `stream_body()`: the request body is not read before the handler asks for it.

use std::{io, panic::AssertUnwindSafe, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{Response, StatusCode},
};
use futures_util::{StreamExt, stream};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::Instant;
use tower::{Layer, service_fn};
use tower_idempotency::{IdempotencyLayer, Keep, MemoryStore, Policy, fingerprint, key, scope, service::RequestBody};

use crate::{
    answers::fixture::{Fixture, KEPT, RELEASED},
    common::{Seen, see},
};

fn streaming(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.fingerprint(fingerprint::off()).stream_body()
}

/// Counts what it receives, and says how it ended.
async fn count(_: tower_idempotency::Operation, request: Request) -> String {
    let mut body = request.into_body();
    let mut length = 0;
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => length += frame.data_ref().map_or(0, Bytes::len),
            Err(_) => return format!("broke behind {length}"),
        }
    }
    format!("{length} bytes")
}

fn upload(body: Body) -> Request {
    Request::post("/run").header("Idempotency-Key", "k").body(body).unwrap()
}

fn broken() -> Body {
    let frames = stream::iter([Ok(Bytes::from_static(b"abc")), Err(io::Error::other("gone"))]);
    Body::from_stream(frames)
}

#[tokio::test]
async fn a_body_larger_than_the_limit_streams() {
    let fixture = Fixture::reading(|layer| streaming(layer).request_limit(10), count);
    let large = || Body::from_stream(stream::iter((0..100).map(|_| Ok::<_, io::Error>(Bytes::from(vec![7; 1000])))));
    assert_eq!(see(fixture.send(upload(large())).await).await, Seen::first(200, "100000 bytes"));
    assert_eq!(see(fixture.send(upload(large())).await).await, Seen::replay(200, "100000 bytes"));
    assert_eq!(fixture.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_handler_runs_before_the_body_is_there() {
    let fixture = Fixture::reading(streaming, |_, request| async move {
        let mut body = request.into_body();
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        format!("{} bytes so far", first.len())
    });
    let never_ends = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"abc"))]).chain(stream::pending());
    let answer = fixture.send(upload(Body::from_stream(never_ends)));
    let answer = tokio::time::timeout(Duration::from_secs(1), answer).await.expect("not held up by the body");
    assert_eq!(see(answer).await, Seen::first(200, "3 bytes so far"));
}

#[tokio::test]
async fn a_body_that_breaks_is_a_failure_whatever_the_handler_answers() {
    let fixture = Fixture::reading(streaming, count);
    assert_eq!(see(fixture.send(upload(broken())).await).await, Seen::first(200, "broke behind 3"));
    assert_eq!(fixture.record().await, RELEASED);
    assert_eq!(see(fixture.send(upload(Body::from("whole"))).await).await, Seen::first(200, "5 bytes"));
    assert_eq!(fixture.record().await, KEPT);
}

#[tokio::test]
async fn a_body_that_breaks_is_kept_where_failures_are_or_the_handler_says_so() {
    let everything = Fixture::reading(|layer| streaming(layer).keep(Keep::EVERYTHING), count);
    let at_most_once = Fixture::reading(|layer| streaming(layer.policy(Policy::at_most_once())), count);
    let by_hand = Fixture::reading(streaming, |operation, request| {
        operation.keep_for(Duration::from_secs(60));
        count(operation, request)
    });
    for fixture in [everything, at_most_once, by_hand] {
        fixture.send(upload(broken())).await;
        assert_eq!(fixture.record().await, KEPT);
    }
}

/// Three bytes, and nothing more.
fn stalled() -> Body {
    Body::from_stream(stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"abc"))]).chain(stream::pending()))
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stands_still_is_a_failure_whatever_the_handler_answers() {
    let timeout = Duration::from_secs(10);
    let fixture = Fixture::reading(|layer| streaming(layer).body_timeout(timeout), count);
    let asked = Instant::now();
    assert_eq!(see(fixture.send(upload(stalled())).await).await, Seen::first(200, "broke behind 3"));
    assert_eq!(asked.elapsed(), timeout);
    assert_eq!(fixture.record().await, RELEASED);
    assert_eq!(see(fixture.send(upload(Body::from("whole"))).await).await, Seen::first(200, "5 bytes"));
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_told_once_that_the_body_stands_still() {
    let fixture = Fixture::reading(streaming, |_, request| async move {
        let mut body = request.into_body();
        body.frame().await.unwrap().unwrap();
        let error = body.frame().await.unwrap().unwrap_err().into_inner();
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        assert!(body.is_end_stream() && body.frame().await.is_none());
        format!("{kind:?}")
    });
    assert_eq!(see(fixture.send(upload(stalled())).await).await, Seen::first(200, "Some(TimedOut)"));
}

#[tokio::test(start_paused = true)]
async fn a_body_may_be_slow() {
    let fixture = Fixture::reading(|layer| streaming(layer).body_timeout(Duration::from_secs(10)), count);
    let slow = stream::iter(0..9).then(|_| async {
        tokio::time::sleep(Duration::from_secs(9)).await;
        Ok::<_, io::Error>(Bytes::from_static(b"abc"))
    });
    assert_eq!(see(fixture.send(upload(Body::from_stream(slow))).await).await, Seen::first(200, "27 bytes"));
    assert_eq!(fixture.record().await, KEPT);
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_none_that_broke() {
    let fixture = Fixture::reading(streaming, |_, _| async { StatusCode::ACCEPTED });
    assert_eq!(fixture.send(upload(broken())).await.status(), StatusCode::ACCEPTED);
    assert_eq!(fixture.record().await, KEPT);
}

#[test]
fn what_needs_the_body_is_refused_when_the_layer_is_built() {
    let layer = || IdempotencyLayer::new(MemoryStore::new()).fingerprint(fingerprint::off()).unscoped().stream_body();
    let service =
        || service_fn(|_: Request<RequestBody<Body>>| async { Ok::<_, io::Error>(Response::new(Body::empty())) });
    let complaint = |layer: IdempotencyLayer| {
        let built = std::panic::catch_unwind(AssertUnwindSafe(|| drop(layer.layer(service()))));
        let panic = built.expect_err("it is refused");
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("a text")
    };
    drop(layer().layer(service()));
    assert!(complaint(layer().fingerprint(fingerprint::bytes())).contains("add `.fingerprint(fingerprint::off())`"));
    let by_closure = fingerprint::from_fn(|_, _| tower_idempotency::fingerprint::Fingerprint::builder().build());
    assert!(complaint(layer().fingerprint(by_closure)).contains("fingerprint::from_fn(..)"));
    assert!(complaint(layer().key(key::content())).contains("take the key from the head"));
    assert!(complaint(layer().keep_request()).contains("`keep_request()` keeps it"));
    assert!(complaint(layer().verify(|_, _| async { Ok(()) })).contains("`verify(..)` sees all of it"));
    #[cfg(feature = "json")]
    {
        assert!(complaint(layer().key(key::json("/id"))).contains("is in the body"));
        let scope = scope::from_key(key::json("/merchant"));
        assert!(complaint(layer().scope(scope)).contains("take the scope from the head"));
    }
    drop(layer().scope(scope::header("x-user")).layer(service()));
}
