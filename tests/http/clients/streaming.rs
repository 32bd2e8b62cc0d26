//! A client that leaves while its answer streams, and one that turns its connection into something else.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::StatusCode,
    routing::post,
};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tower_idempotency::{IdempotencyLayer, MemoryStore, store::State};

use crate::{
    clients::client::{Client, Way, ask},
    clients::server::{Site, within},
    clients::wire::Wire,
    common::Counter,
};

#[tokio::test]
async fn a_stream_whose_client_leaves_ends_and_stays_recorded() {
    for way in Way::ALL {
        let site = Site::new(|layer| layer).await;
        let mut client = Client::new(way, &site).await;
        let answer = within("a head", client.ask("/stream", "k", "body")).await.unwrap();
        assert_eq!(site.record("/stream", "k").await, Some((State::Settled, false)), "{way:?}: before any data");
        let writer = site.writer();
        writer.send(Bytes::from_static(b"data: 1\n\n")).await.unwrap();
        let mut body = answer.into_body();
        let frame = within("the first event", body.frame()).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "data: 1\n\n", "{way:?}: as it comes");
        client.leave(body);
        within("the stream's end", writer.closed()).await;
        let retry = ask(way, &site, "/stream", "k", "body").await;
        assert_eq!((retry.problem().as_str(), site.runs()), ("response-not-retained", 1), "{way:?}");
    }
}

#[tokio::test]
async fn an_upgrade_goes_through() {
    fn upgrade(mut request: Request) -> (StatusCode, [(&'static str, &'static str); 2], Body) {
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let mut io = TokioIo::new(upgrade.await.unwrap());
            let mut word = [0; 4];
            io.read_exact(&mut word).await.unwrap();
            io.write_all(&word).await.unwrap();
        });
        (StatusCode::SWITCHING_PROTOCOLS, [("connection", "upgrade"), ("upgrade", "echo")], Body::empty())
    }
    let runs = Counter::default();
    let counted = runs.clone();
    let app = Router::new()
        .route(
            "/echo",
            post(move |request| async move {
                counted.next();
                upgrade(request)
            }),
        )
        .layer(IdempotencyLayer::new(MemoryStore::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let request =
        "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: echo\r\nIdempotency-Key: k\r\n\r\n";

    let mut wire = Wire::to(address).await;
    wire.send(request).await;
    assert!(wire.head().await.starts_with("HTTP/1.1 101 "));
    wire.send("ping").await;
    assert_eq!(wire.exactly(4).await, "ping");

    let mut wire = Wire::to(address).await;
    wire.send(request).await;
    let answer = wire.answer().await;
    assert!(answer.starts_with("HTTP/1.1 409 ") && answer.contains("response-not-retained"), "{answer}");
    assert_eq!(runs.get(), 1);
}
