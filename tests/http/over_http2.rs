//! What is elsewhere in HTTP/2 than in HTTP/1.1.

use std::convert::Infallible;

use axum::body::Body;
use http::{Request, Response};
use hyper::{client::conn::http2, server::conn::http2 as server};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    service::TowerToHyperService,
};
use tower::{Layer, service_fn};
use tower_idempotency::{IdempotencyLayer, MemoryStore, scope};

use crate::common::{Counter, Seen, see};

/// The host is `:authority`; there is no header `Host`.
#[tokio::test]
async fn the_host_as_a_scope() {
    let runs = Counter::default();
    let handler = service_fn(move |request: Request<_>| {
        assert!(!request.headers().contains_key("host"));
        let answer = Response::new(Body::from(runs.next().to_string()));
        async { Ok::<_, Infallible>(answer) }
    });
    let layer = IdempotencyLayer::new(MemoryStore::new()).scope(scope::host());
    let (near, far) = tokio::io::duplex(64 * 1024);
    let service = TowerToHyperService::new(layer.layer(handler));
    tokio::spawn(server::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(far), service));
    let (mut client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(near)).await.unwrap();
    tokio::spawn(connection);
    for (authority, expected) in [
        ("a.example", Seen::first(200, "1")),
        ("b.example", Seen::first(200, "2")),
        ("A.example:80", Seen::replay(200, "1")),
        ("b.example:8080", Seen::first(200, "3")),
    ] {
        let request = Request::post(format!("http://{authority}/orders")).header("Idempotency-Key", "k");
        client.ready().await.unwrap();
        let answer = client.send_request(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(see(answer).await, expected, "{authority}");
    }
}
