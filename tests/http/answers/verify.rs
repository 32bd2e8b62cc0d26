//! A step of the application's before the claim.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, Response, StatusCode, request::Parts},
};
use http_body_util::BodyExt;
use tower_idempotency::{Event, IdempotencyLayer, Observer, key};

use crate::{
    answers::fixture::{Fixture, KEPT},
    common::{Counter, Seen, post, see},
};

/// Accepts what is signed by its own body.
async fn verify(head: Parts, body: Bytes) -> Result<(), Response<Bytes>> {
    // As if it asked for a certificate.
    tokio::time::sleep(Duration::from_millis(5)).await;
    match head.headers.get("x-signature") {
        Some(signature) if signature.as_bytes() == body => Ok(()),
        _ => {
            let mut refused = Response::new(Bytes::from_static(b"fail"));
            *refused.status_mut() = StatusCode::UNAUTHORIZED;
            refused.headers_mut().insert("x-reason", "signature".parse().unwrap());
            Err(refused)
        }
    }
}

fn request(key: Option<&str>, signature: &str, body: &str) -> axum::extract::Request {
    let mut request = post("/run", "k", body);
    match key {
        Some(key) => request.headers_mut().insert("idempotency-key", key.parse().unwrap()),
        None => request.headers_mut().remove("idempotency-key"),
    };
    request.headers_mut().insert("x-signature", signature.parse().unwrap());
    request
}

#[tokio::test(start_paused = true)]
async fn what_is_forged_claims_nothing() {
    let fixture = Fixture::reading(
        |layer| layer.verify(verify),
        |_, request| async { request.into_body().collect().await.unwrap().to_bytes() },
    );
    for _ in 0..2 {
        let refused = fixture.send(request(Some("k"), "forged", "paid")).await;
        assert_eq!(refused.headers()["x-reason"], "signature");
        assert_eq!(see(refused).await, Seen::first(401, "fail"), "it is sent as it is");
        assert_eq!(fixture.record().await, None, "nobody can burn a key");
    }
    assert_eq!(see(fixture.send(request(Some("k"), "paid", "paid")).await).await, Seen::first(200, "paid"));
    assert_eq!(fixture.record().await, KEPT);
    assert_eq!(
        see(fixture.send(request(Some("k"), "forged", "paid")).await).await,
        Seen::first(401, "fail"),
        "no replay"
    );
    assert_eq!(see(fixture.send(request(Some("k"), "paid", "paid")).await).await, Seen::replay(200, "paid"));
    assert_eq!(fixture.runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_comes_before_a_key_in_the_body_is_looked_at() {
    let fixture = Fixture::new(|layer| layer.verify(verify).key(key::json("/id")).unscoped(), |_| "done");
    assert_eq!(see(fixture.send(request(None, "forged", "{not json")).await).await, Seen::first(401, "fail"));
    assert_eq!(see(fixture.send(request(None, "{}", "{}")).await).await.problem(), "key-missing");
    let body = r#"{"id":"7"}"#;
    assert_eq!(see(fixture.send(request(None, body, body)).await).await, Seen::first(200, "done"));
}

#[tokio::test(start_paused = true)]
async fn what_has_no_key_is_verified_too() {
    let runs = Counter::default();
    let counted = runs.clone();
    let handler =
        tower::service_fn(move |request: axum::http::Request<tower_idempotency::service::RequestBody<Body>>| {
            counted.next();
            async move {
                let whole = request.into_body().collect().await.unwrap().to_bytes();
                Ok::<_, std::convert::Infallible>(Response::new(Body::from(whole)))
            }
        });
    for key in [key::header("Idempotency-Key"), key::json("/id")] {
        let layer = IdempotencyLayer::new(tower_idempotency::MemoryStore::new());
        let service = tower::Layer::layer(&layer.key(key).key_optional().verify(verify), handler.clone());
        let ask = async |signature: &str, body: &str| {
            see(tower::ServiceExt::oneshot(service.clone(), request(None, signature, body)).await.unwrap()).await
        };
        let before = runs.get();
        assert_eq!(ask("forged", "{}").await, Seen::first(401, "fail"));
        assert_eq!(runs.get(), before);
        assert_eq!(ask("{}", "{}").await, Seen::first(200, "{}"));
        assert_eq!(runs.get(), before + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_is_not_verified() {
    let fixture =
        Fixture::new(|layer| layer.verify(|_, _| async { panic!("it is not asked") }).request_limit(3), |_| "done");
    assert_eq!(see(fixture.send(request(Some("k"), "paid", "paid")).await).await.problem(), "body-too-large");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Observer for Log {
    fn on_event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

#[tokio::test(start_paused = true)]
async fn observers_are_told() {
    let log = Log::default();
    let watched = log.clone();
    let fixture = Fixture::new(|layer| layer.verify(verify).observer(watched), |_| HeaderMap::new());
    fixture.send(request(Some("k"), "forged", "paid")).await;
    assert_eq!(*log.0.lock().unwrap(), ["Unverified { route: \"/run\", status: 401 }"]);
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_is_switched_off_verifies_all_the_same() {
    let runs = Counter::default();
    let counted = runs.clone();
    let handler =
        tower::service_fn(move |request: axum::http::Request<tower_idempotency::service::RequestBody<Body>>| {
            counted.next();
            async move {
                let whole = request.into_body().collect().await.unwrap().to_bytes();
                Ok::<_, std::convert::Infallible>(Response::new(Body::from(whole)))
            }
        });
    let layer = IdempotencyLayer::new(tower_idempotency::MemoryStore::new()).verify(verify).disabled(true);
    let service = tower::Layer::layer(&layer, handler);
    let ask = async |key: Option<&str>, signature: &str| {
        see(tower::ServiceExt::oneshot(service.clone(), request(key, signature, "paid")).await.unwrap()).await
    };
    for key in [Some("k"), None] {
        assert_eq!(ask(key, "forged").await, Seen::first(401, "fail"));
        assert_eq!(ask(key, "paid").await, Seen::first(200, "paid"));
    }
    assert_eq!(ask(Some("k"), "paid").await, Seen::first(200, "paid"), "nothing is protected");
    assert_eq!(runs.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_the_layer_leaves_out_is_not_verified() {
    let runs = Counter::default();
    let counted = runs.clone();
    let handler = tower::service_fn(move |_: axum::http::Request<tower_idempotency::service::RequestBody<Body>>| {
        counted.next();
        async { Ok::<_, std::convert::Infallible>(Response::new(Body::empty())) }
    });
    let layer = IdempotencyLayer::new(tower_idempotency::MemoryStore::new()).verify(verify);
    let skipping = layer.clone().skip_if(|head| head.headers.contains_key("x-internal"));
    let by_name = layer.clone().skip_routes(["/run"]);
    let forged = |change: fn(&mut axum::extract::Request)| {
        let mut forged = request(Some("k"), "forged", "paid");
        change(&mut forged);
        forged
    };
    for (run, (layer, request)) in [
        (layer, forged(|request| *request.method_mut() = axum::http::Method::PUT)),
        (skipping, forged(|request| drop(request.headers_mut().insert("x-internal", "1".parse().unwrap())))),
        (by_name, forged(|_| {})),
    ]
    .into_iter()
    .enumerate()
    {
        let service = tower::Layer::layer(&layer, handler.clone());
        assert_eq!(tower::ServiceExt::oneshot(service, request).await.unwrap().status(), StatusCode::OK);
        assert_eq!(runs.get(), run + 1);
    }
}
