//! Which statuses are kept, in trailers and in heads.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::StreamBody;
use tonic::{Code, Response, Status, body::Body};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{Keep, MemoryStore, Operation, Policy};
use tower_idempotency_grpc::{GrpcLayer, codes, service::GrpcIdempotency};

use crate::bank::{Bank, Receipt, order, pay, serve};

fn all() -> impl Iterator<Item = Code> {
    (0..17).map(Code::from_i32)
}

/// Calls twice a handler that answers with this code, and returns how often it ran, and the attempts that it saw.
async fn runs(layer: &GrpcLayer, code: Code) -> Vec<u32> {
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let seen = attempts.clone();
    let bank = Bank::new(move |request, run| {
        seen.lock().unwrap().push(request.extensions().get::<Operation>().unwrap().attempt());
        async move { if code == Code::Ok { Ok(Response::new(Receipt::of(run))) } else { Err(Status::new(code, "no")) } }
    });
    let service = serve(layer, &bank);
    for _ in 0..2 {
        let answer = pay(&service, order("a", 7)).await;
        assert_eq!(answer.map_or_else(|status| status.code(), |_| Code::Ok), code);
    }
    std::mem::take(&mut *attempts.lock().unwrap())
}

#[tokio::test(start_paused = true)]
async fn by_default_success_is_kept() {
    for code in all() {
        let layer = GrpcLayer::new(MemoryStore::new());
        let expected = match code {
            Code::Ok => vec![1],
            // Nothing began.
            Code::Unauthenticated | Code::ResourceExhausted => vec![1, 1],
            _ => vec![1, 2],
        };
        assert_eq!(runs(&layer, code).await, expected, "{code:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn final_codes_are_kept_if_the_policy_says_so() {
    use Code::{AlreadyExists, FailedPrecondition, InvalidArgument, NotFound, Ok, OutOfRange};
    let kept = [Ok, InvalidArgument, FailedPrecondition, OutOfRange, NotFound, AlreadyExists];
    for code in all() {
        let layer = GrpcLayer::new(MemoryStore::new()).policy(Policy::replay().keep(Keep::FINAL));
        let runs = runs(&layer, code).await.len();
        assert_eq!(runs, if kept.contains(&code) { 1 } else { 2 }, "{code:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_codes_that_are_kept_can_be_chosen() {
    for code in all() {
        let keep = codes::keep([Code::Ok, Code::Aborted]);
        let layer = GrpcLayer::new(MemoryStore::new()).policy(Policy::replay().keep(keep));
        let runs = runs(&layer, code).await.len();
        assert_eq!(runs, if matches!(code, Code::Ok | Code::Aborted) { 1 } else { 2 }, "{code:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn at_most_once_keeps_every_code() {
    for code in all() {
        let layer = GrpcLayer::new(MemoryStore::new()).policy(Policy::at_most_once());
        // Its client has no credentials, and may get some.
        let runs = runs(&layer, code).await.len();
        assert_eq!(runs, if code == Code::Unauthenticated { 2 } else { 1 }, "{code:?}");
    }
}

/// Answers with these frames.
async fn ask(layer: &GrpcLayer, frames: Vec<http_body::Frame<Bytes>>) -> (u16, Option<http::HeaderMap>) {
    let frames = std::sync::Arc::new(frames);
    let inner = service_fn(move |_: http::Request<_>| {
        let frames: Vec<_> = frames.iter().map(copy).map(Ok::<_, Status>).collect();
        let body = Body::new(StreamBody::new(tokio_stream::iter(frames)));
        let answer = http::Response::builder().header("content-type", "application/grpc").body(body).unwrap();
        async { Ok::<_, std::convert::Infallible>(answer) }
    });
    let service: GrpcIdempotency<_> = layer.layer(inner);
    let request =
        http::Request::post("/a.B/C").header("content-type", "application/grpc").header("idempotency-key", "k");
    let answer = service.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let replayed = u16::from(answer.headers().contains_key("idempotent-replayed"));
    (replayed, http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().trailers().cloned())
}

fn copy(frame: &http_body::Frame<Bytes>) -> http_body::Frame<Bytes> {
    match frame.data_ref() {
        Some(data) => http_body::Frame::data(data.clone()),
        None => http_body::Frame::trailers(frame.trailers_ref().unwrap().clone()),
    }
}

/// A service that forwards calls may have a message and then an error.
#[tokio::test(start_paused = true)]
async fn the_code_in_the_trailers_counts_after_a_message() {
    let message = || http_body::Frame::data(Bytes::from_static(b"\0\0\0\0\x01x"));
    let trailers = |code: &'static str| {
        let fields = [("grpc-status", code), ("x-cost", "7")];
        http_body::Frame::trailers(
            fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).into_iter().collect(),
        )
    };
    for (code, kept) in [("0", 1), ("14", 0), ("13", 0)] {
        let layer = GrpcLayer::new(MemoryStore::new());
        let answer = || ask(&layer, vec![message(), trailers(code)]);
        let (first, again) = (answer().await, answer().await);
        assert_eq!((first.0, again.0), (0, kept), "{code}");
        assert_eq!(again.1.unwrap()["x-cost"], "7");
    }
    // It does not say how it ended.
    let layer = GrpcLayer::new(MemoryStore::new());
    for _ in 0..2 {
        assert_eq!(ask(&layer, vec![message()]).await, (0, None));
    }
}
