//! Trailers, both ways.

use axum::http::Request;
use http_body_util::BodyExt;

use crate::{
    clients::client::{Client, Way},
    clients::server::{Site, within},
    clients::wire::{Wire, head, post},
    common::frames::Frames,
    common::see,
};

const KEY: &str = "Idempotency-Key: k\r\n";

#[tokio::test]
async fn of_an_answer_over_http1() {
    let site = Site::new(|layer| layer).await;
    for (te, replayed) in [("TE: trailers\r\n", false), ("TE: trailers\r\n", true), ("", true)] {
        let mut wire = Wire::to(site.address).await;
        wire.send(post("/trailers", &format!("{KEY}{te}"), "")).await;
        let answer = wire.answer().await;
        assert!(answer.contains("\r\ntrailer: x-checksum\r\n"), "{answer}");
        assert!(answer.contains("\r\n3\r\nabc\r\n0\r\n"), "{answer}");
        assert_eq!(answer.ends_with("\r\nx-checksum: abc\r\n\r\n"), !te.is_empty(), "{answer}");
        assert_eq!(answer.contains("\r\nidempotent-replayed: true\r\n"), replayed, "{answer}");
    }
}

#[tokio::test]
async fn of_an_answer_over_http2() {
    let site = Site::new(|layer| layer).await;
    for replayed in [false, true] {
        let mut client = Client::new(Way::Http2, &site).await;
        let answer = within("a head", client.ask("/trailers", "k", "")).await.unwrap();
        assert_eq!(answer.headers().contains_key("idempotent-replayed"), replayed);
        let body = within("a body", answer.into_body().collect()).await.unwrap();
        assert_eq!(body.trailers().unwrap()["x-checksum"], "abc");
        assert_eq!(body.to_bytes(), "abc");
    }
}

#[tokio::test]
async fn of_a_request() {
    let site = Site::new(|layer| layer).await;
    let mut wire = Wire::to(site.address).await;
    wire.send(head("/echo", &format!("{KEY}Trailer: x-sum\r\nTransfer-Encoding: chunked\r\n"))).await;
    wire.send("3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n").await;
    assert!(wire.answer().await.ends_with("run 1: abc 7"));

    let mut client = Client::new(Way::Http2, &site).await;
    let body = Frames::of(["abc"]).trailers(&[("x-sum", "8")]).boxed();
    let request = Request::post("http://site/echo").header("Idempotency-Key", "other").body(body).unwrap();
    let answer = within("a head", client.send(request)).await.unwrap();
    assert_eq!(see(answer).await.body, "run 2: abc 8");
}
