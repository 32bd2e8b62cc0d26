//! Trailers on their way to clients, in HTTP/1.1 and HTTP/2.

use std::convert::Infallible;

use axum::body::Body;
use http::{HeaderMap, Request, Response, header::TRAILER};
use http_body_util::BodyExt;
use hyper::{client::conn, server::conn as server};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    service::TowerToHyperService,
};
use tower::{Layer, service_fn};
use tower_idempotency::{IdempotencyLayer, MemoryStore};

use crate::common::{
    Counter,
    frames::{Frames, fields},
};

const SUM: &[(&str, &str)] = &[("x-sum", "2")];

/// The body, the trailers, and whether it is a replay.
type Received = (Vec<u8>, Option<HeaderMap>, bool);

async fn receive(response: Response<hyper::body::Incoming>) -> Received {
    let replayed = response.headers().contains_key("idempotent-replayed");
    let whole = response.into_body().collect().await.unwrap();
    let trailers = whole.trailers().cloned();
    (whole.to_bytes().to_vec(), trailers, replayed)
}

/// Sends one request twice over one connection.
async fn twice(over_http2: bool) -> [Received; 2] {
    let runs = Counter::default();
    let handler = service_fn(move |_: Request<_>| {
        runs.next();
        let answer = Response::builder().header(TRAILER, "x-sum").body(Frames::of(["ab"]).trailers(SUM).boxed());
        async { Ok::<_, Infallible>(answer.unwrap()) }
    });
    let service = TowerToHyperService::new(IdempotencyLayer::new(MemoryStore::new()).layer(handler));
    let (near, far) = tokio::io::duplex(64 * 1024);
    let (near, far) = (TokioIo::new(near), TokioIo::new(far));
    let order = || {
        let request = Request::post("http://a.example/orders").header("Idempotency-Key", "k").header("te", "trailers");
        request.body(Body::empty()).unwrap()
    };
    let mut received = Vec::new();
    if over_http2 {
        tokio::spawn(server::http2::Builder::new(TokioExecutor::new()).serve_connection(far, service));
        let (mut client, connection) = conn::http2::handshake(TokioExecutor::new(), near).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..2 {
            received.push(receive(client.send_request(order()).await.unwrap()).await);
        }
    } else {
        tokio::spawn(server::http1::Builder::new().serve_connection(far, service));
        let (mut client, connection) = conn::http1::handshake(near).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..2 {
            client.ready().await.unwrap();
            received.push(receive(client.send_request(order()).await.unwrap()).await);
        }
    }
    received.try_into().unwrap()
}

#[tokio::test]
async fn a_replay_has_the_trailers_of_the_first_answer() {
    for over_http2 in [false, true] {
        let [first, replay] = twice(over_http2).await;
        assert_eq!(first, (b"ab".to_vec(), Some(fields(SUM)), false), "over HTTP/2: {over_http2}");
        assert_eq!(replay, (b"ab".to_vec(), Some(fields(SUM)), true), "over HTTP/2: {over_http2}");
    }
}
