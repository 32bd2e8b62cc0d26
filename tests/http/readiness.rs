//! The service that was asked for its readiness is the one that is called.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use tower::{Layer, Service, ServiceExt};
use tower_idempotency::{IdempotencyLayer, MemoryStore};

/// Panics if it is called without having been ready; a clone has to be asked anew.
#[derive(Debug, Default)]
struct Strict {
    asked: bool,
}

impl Clone for Strict {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<B> Service<Request<B>> for Strict {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.asked = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        assert!(std::mem::take(&mut self.asked), "called without having been ready");
        ready(Ok(Response::new(Full::from("done"))))
    }
}

fn request(method: &str, key: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri("/");
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    request.body(Full::from("body")).unwrap()
}

#[tokio::test]
async fn only_a_ready_service_is_called() {
    let mut service = IdempotencyLayer::new(MemoryStore::new()).key_optional().layer(Strict::default());
    // First, replay, unprotected by method, unprotected without a key, refused: any order of them.
    for _ in 0..2 {
        for (method, key) in [
            ("POST", Some("a")),
            ("POST", Some("a")),
            ("GET", None),
            ("POST", None),
            ("POST", Some(",")),
            ("POST", Some("b")),
        ] {
            let ready = ServiceExt::<Request<Full<Bytes>>>::ready(&mut service).await.unwrap();
            ready.call(request(method, key)).await.unwrap();
        }
    }
}

#[tokio::test]
async fn readiness_is_that_of_the_inner_service() {
    let (mock, mut handle) =
        tower_test::mock::pair::<Request<tower_idempotency::service::RequestBody<Full<Bytes>>>, Response<Full<Bytes>>>(
        );
    let mut service = tower_test::mock::Spawn::new(IdempotencyLayer::new(MemoryStore::new()).layer(mock));
    handle.allow(0);
    assert!(service.poll_ready().is_pending());
    handle.allow(1);
    assert!(service.is_woken());
    assert!(service.poll_ready().is_ready());
    let answer = tokio::spawn(service.call(request("POST", Some("a"))));
    let (got, send) = handle.next_request().await.unwrap();
    assert_eq!(got.headers()["idempotency-key"], "a");
    send.send_response(Response::new(Full::from("done")));
    assert_eq!(answer.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn errors_are_those_of_the_inner_service() {
    let (mock, mut handle) =
        tower_test::mock::pair::<Request<tower_idempotency::service::RequestBody<Full<Bytes>>>, Response<Full<Bytes>>>(
        );
    let service = IdempotencyLayer::new(MemoryStore::new()).layer(mock);
    for _ in 0..2 {
        let answer = tokio::spawn(service.clone().oneshot(request("POST", Some("a"))));
        let (_, send) = handle.next_request().await.expect("an error releases the key");
        send.send_error("no database");
        assert_eq!(answer.await.unwrap().unwrap_err().to_string(), "no database");
    }
}
