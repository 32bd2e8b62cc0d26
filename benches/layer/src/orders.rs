//! The router that is measured, and requests to it.

use std::hint::black_box;

use axum::{
    Router,
    body::{Body, Bytes},
    routing::post,
};
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use crate::{clock::processor_time, mix};

/// 31 bytes.
pub const ORDER: &str = r#"{"amount":100,"currency":"eur"}"#;
pub const OTHER: &str = r#"{"amount":200,"currency":"eur"}"#;

/// How many requests are there before the clock starts. Few, so that they are in the cache as they would be if they had
/// just been read.
const BATCH: u64 = 100;

/// Reads the body and answers with 256 bytes.
pub fn orders() -> Router {
    async fn order(_: Bytes) -> (StatusCode, [u8; 256]) {
        (StatusCode::CREATED, [b'x'; 256])
    }
    // As a server does: layers are put on once, and not with each request.
    Router::new().route("/orders", post(order).put(order)).with_state(())
}

pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a runtime")
}

pub fn request(method: Method, key: Option<u64>, body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri("/orders").header("content-type", "application/json");
    if let Some(key) = key {
        // Keys with neighbouring numbers are not neighbours in memory.
        request = request.header("idempotency-key", format!("{:016x}{:016x}", mix(key), mix(!key)));
    }
    request.body(body.into()).expect("a request")
}

pub fn order(key: u64) -> Request<Body> {
    request(Method::POST, Some(key), ORDER)
}

/// One request, as a server that is built on hyper makes it: on a clone of the router. It reads the whole answer.
pub async fn ask(app: &Router, request: Request<Body>) -> StatusCode {
    let Ok(answer) = app.clone().oneshot(request).await;
    let status = answer.status();
    black_box(answer.into_body().collect().await.is_ok());
    status
}

/// Sends `count` requests one after another; gives nanoseconds of processor time for one of them. Each has to be answered
/// by `status`.
pub fn time(
    runtime: &Runtime,
    app: &Router,
    status: StatusCode,
    count: u64,
    next: impl FnMut() -> Request<Body>,
) -> f64 {
    time_each(runtime, app, status, count, next, || ())
}

/// The same, and calls `before` before each request.
pub fn time_each(
    runtime: &Runtime,
    app: &Router,
    status: StatusCode,
    count: u64,
    mut next: impl FnMut() -> Request<Body>,
    before: impl Fn(),
) -> f64 {
    let (mut nanos, mut unlike) = (0, 0);
    let batch = BATCH.min(count);
    for _ in 0..count / batch {
        let requests: Vec<_> = (0..batch).map(|_| next()).collect();
        let begin = processor_time();
        runtime.block_on(async {
            for request in requests {
                before();
                unlike += u32::from(ask(app, request).await != status);
            }
        });
        nanos += processor_time() - begin;
    }
    assert_eq!(unlike, 0, "answers that are not {status}");
    nanos as f64 / (count / batch * batch) as f64
}
