//! `Expect: 100-continue`: the body is asked for only if it is needed.

use crate::{
    clients::server::Site,
    clients::wire::{Wire, head},
};

const EXPECT: &str = "Expect: 100-continue\r\n";
const LIMIT: usize = 2 << 20;

#[tokio::test]
async fn what_is_refused_by_its_head_is_not_asked_for_its_body() {
    let over = format!("Idempotency-Key: k\r\nContent-Length: {}\r\n", LIMIT + 1);
    for (fields, refusal) in [
        ("Idempotency-Key: \"k\r\nContent-Length: 4\r\n", "400 Bad Request"),
        ("Idempotency-Key: k\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n", "400 Bad Request"),
        ("Content-Length: 2000000\r\n", "400 Bad Request"),
        (over.as_str(), "413 Payload Too Large"),
    ] {
        let site = Site::new(|layer| layer).await;
        let mut wire = Wire::to(site.address).await;
        wire.send(head("/echo", &format!("{EXPECT}{fields}"))).await;
        let answer = wire.answer().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {refusal}\r\n")), "{fields}: {answer}");
        // What would come now could not be distinguished from a body: the server closes the connection.
        wire.closed().await;
        assert_eq!(site.runs(), 0);
    }
}

#[tokio::test]
async fn what_is_wanted_is_asked_for() {
    let site = Site::new(|layer| layer).await;
    for marked in [false, true] {
        let mut wire = Wire::to(site.address).await;
        wire.send(head("/echo", &format!("{EXPECT}Idempotency-Key: k\r\nContent-Length: 4\r\n"))).await;
        assert_eq!(wire.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
        assert!(wire.is_silent());
        wire.send("body").await;
        let answer = wire.answer().await;
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("run 1: body -"), "{answer}");
        assert_eq!(answer.contains("\r\nidempotent-replayed: true\r\n"), marked);
    }
}

#[tokio::test]
async fn what_turns_out_too_large_can_read_its_answer() {
    let site = Site::new(|layer| layer).await;
    let mut wire = Wire::to(site.address).await;
    wire.send(head("/echo", &format!("{EXPECT}Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\n"))).await;
    assert_eq!(wire.head().await, "HTTP/1.1 100 Continue\r\n\r\n");
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    for _ in 0..64 {
        wire.send(&chunk).await;
    }
    wire.send("0\r\n\r\n").await;
    let answer = wire.answer().await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.contains("body-too-large"), "{answer}");
}
