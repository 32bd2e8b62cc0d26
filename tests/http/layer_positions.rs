//! The layer in each place that it can be put, over real sockets.

use std::{convert::Infallible, net::SocketAddr};

use crate::common::{Counter, exchange, wire};
use axum::{Router, routing::post};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::net::TcpListener;
use tower::{Layer, service_fn};
use tower_idempotency::{IdempotencyLayer, MemoryStore, service::RequestBody};

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

async fn assert_protected(address: SocketAddr, runs: &Counter) {
    let first = exchange(address, &wire("/run", "k", "body")).await;
    let retry = exchange(address, &wire("/run", "k", "body")).await;
    assert!(first.starts_with("HTTP/1.1 200 ") && first.ends_with("\r\n\r\nrun 1"), "{first}");
    assert!(retry.starts_with("HTTP/1.1 200 ") && retry.ends_with("\r\n\r\nrun 1"), "{retry}");
    assert!(!first.contains("idempotent-replayed"), "{first}");
    assert!(retry.contains("\r\nidempotent-replayed: true\r\n"), "{retry}");
    for answer in [&first, &retry] {
        assert_eq!(answer.matches("content-length: 5\r\n").count(), 1, "{answer}");
        assert_eq!(answer.matches("\r\ndate: ").count(), 1, "{answer}");
    }
    let other = exchange(address, &wire("/run", "k", "another body")).await;
    assert!(other.starts_with("HTTP/1.1 422 "), "{other}");
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn in_each_place_of_an_axum_router() {
    for place in 0..3 {
        let runs = Counter::default();
        let counted = runs.clone();
        let handler = move || {
            let run = counted.next();
            async move { format!("run {run}") }
        };
        let app = match place {
            0 => Router::new().route("/run", post(handler)).layer(layer()),
            1 => Router::new().route("/run", post(handler)).route_layer(layer()),
            _ => Router::new().route("/run", post(handler).layer(layer())),
        };
        assert_protected(serve(app).await, &runs).await;
    }
}

#[tokio::test]
async fn on_a_bare_hyper_server() {
    let runs = Counter::default();
    let counted = runs.clone();
    let handler = service_fn(move |_: Request<RequestBody<Incoming>>| {
        let run = counted.next();
        async move { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(format!("run {run}")))) }
    });
    let service = layer().layer(handler);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let service = TowerToHyperService::new(service.clone());
            tokio::spawn(async move {
                let _ =
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    assert_protected(address, &runs).await;
}
