//! Refusals that their clients can read, and connections that go on behind them.

use axum::{Router, routing};
use tokio::net::TcpListener;
use tower_http::limit::RequestBodyLimitLayer;
use tower_idempotency::{IdempotencyLayer, MemoryStore};

use crate::{
    clients::client::{Client, Way},
    clients::server::{Site, within},
    clients::wire::{Wire, head, post},
    common::see,
};

const KEY: &str = "Idempotency-Key: k\r\n";
const BAD: &str = "Idempotency-Key: \"k\r\n";

#[tokio::test]
async fn a_large_body_that_is_refused_can_read_its_answer() {
    let large = "x".repeat(4 << 20);
    for (fields, refusal) in [(BAD, "key-invalid"), ("", "key-missing"), (KEY, "body-too-large")] {
        for chunked in [false, true] {
            let site = Site::new(|layer| layer).await;
            let mut wire = Wire::to(site.address).await;
            if chunked {
                wire.send(head("/echo", &format!("{fields}Transfer-Encoding: chunked\r\n"))).await;
                for chunk in large.as_bytes().chunks(0x10000) {
                    wire.send("10000\r\n").await;
                    wire.send(chunk).await;
                    wire.send("\r\n").await;
                }
                wire.send("0\r\n\r\n").await;
            } else {
                wire.send(post("/echo", fields, &large)).await;
            }
            let answer = wire.answer().await;
            assert!(answer.contains(&format!("#{refusal}\"")), "{refusal}, chunked: {chunked}: {answer}");
            // It was read to its end, so that the connection is good for more.
            wire.send(post("/echo", KEY, "body")).await;
            assert!(wire.answer().await.ends_with("run 1: body -"));
        }
    }
}

#[tokio::test]
async fn a_large_body_that_a_layer_further_out_refuses_can_read_its_answer() {
    let app = Router::new()
        .route("/echo", routing::post(|| async { "ran" }))
        .layer(IdempotencyLayer::new(MemoryStore::new()))
        .layer(RequestBodyLimitLayer::new(8));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut wire = Wire::to(listener.local_addr().unwrap()).await;
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    wire.send(head("/echo", &format!("{KEY}Transfer-Encoding: chunked\r\n"))).await;
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..64 {
        wire.send(&chunk).await;
    }
    wire.send("0\r\n\r\n").await;
    assert!(wire.answer().await.contains("#body-too-large\""));
}

#[tokio::test]
async fn over_http2_too() {
    for (key, refusal) in [("\"", "key-invalid"), ("k", "body-too-large")] {
        let site = Site::new(|layer| layer).await;
        let mut client = Client::new(Way::Http2, &site).await;
        let refused = within("an answer", client.ask("/echo", key, "x".repeat(4 << 20))).await.unwrap();
        assert_eq!(within("its body", see(refused)).await.problem(), refusal);
        let next = within("an answer", client.ask("/echo", "k", "body")).await.unwrap();
        assert_eq!(within("its body", see(next)).await.body, "run 1: body -");
    }
}

#[tokio::test]
async fn a_connection_goes_on_behind_a_refusal() {
    let site = Site::new(|layer| layer.request_limit(8)).await;
    let mut wire = Wire::to(site.address).await;
    wire.send(post("/echo", KEY, "first")).await;
    assert!(wire.answer().await.ends_with("run 1: first -"));
    for (fields, body, refusal) in [
        (BAD, "body", "key-invalid"),
        (BAD, "", "key-invalid"),
        ("", "body", "key-missing"),
        ("Idempotency-Key: a\r\nIdempotency-Key: b\r\n", "body", "key-invalid"),
        (KEY, "other", "key-reused"),
        (KEY, "far too long", "body-too-large"),
    ] {
        wire.send(post("/echo", fields, body)).await;
        let answer = wire.answer().await;
        assert!(answer.contains(&format!("#{refusal}\"")), "{answer}");
        assert!(!answer.contains("\r\nconnection: close\r\n"), "{answer}");
    }
    wire.send(post("/echo", KEY, "first")).await;
    let replay = wire.answer().await;
    assert!(replay.contains("\r\nidempotent-replayed: true\r\n") && replay.ends_with("run 1: first -"), "{replay}");
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_their_order() {
    let site = Site::new(|layer| layer).await;
    let mut wire = Wire::to(site.address).await;
    let other = "Idempotency-Key: other\r\n";
    let requests = [(KEY, "a"), (KEY, "a"), (BAD, "a"), (other, "b"), (KEY, "b"), (other, "b")];
    wire.send(requests.map(|(fields, body)| post("/echo", fields, body)).concat()).await;
    for end in ["run 1: a -", "run 1: a -", "key-invalid", "run 2: b -", "key-reused", "run 2: b -"] {
        let answer = wire.answer().await;
        assert!(answer.contains(end), "{end}: {answer}");
    }
    assert_eq!(site.runs(), 2);
}

#[tokio::test]
async fn a_client_that_stops_half_way_and_listens_hears_that_its_body_is_incomplete() {
    let site = Site::new(|layer| layer).await;
    let mut wire = Wire::to(site.address).await;
    wire.send(head("/echo", &format!("{KEY}Content-Length: 8\r\n"))).await;
    wire.send("half").await;
    wire.finish().await;
    let answer = wire.answer().await;
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("#body-incomplete\""), "{answer}");
    assert_eq!((site.runs(), site.record("/echo", "k").await), (0, None));
}
