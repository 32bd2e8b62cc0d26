//! The parts that a request goes through: the key, the fingerprint by size, answers by size.

// What the crate keeps to itself, built here once more so that it can be measured alone.
#[path = "../../../../src/extract/body/structured.rs"]
mod structured;

/// What it knows of the crate.
mod value {
    pub use tower_idempotency::key::KeyError;
}

use std::{hint::black_box, time::Instant};

use axum::{Router, body::Bytes, routing::post};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use layer_benches::{
    orders::{self, order, orders, request, time},
    quick,
    rounds::Rounds,
    row,
};
use sha2::{Digest, Sha256};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore,
    fingerprint::{self, Fingerprint},
    store::RecordKey,
};

const MEBIBYTE: usize = 1 << 20;

fn main() {
    let rounds = if quick() { 15 } else { 51 };
    keys(rounds);
    header_keys(rounds);
    fingerprints(rounds);
    large_bodies(rounds);
    answers(rounds);
}

/// Nanoseconds of one of `count` calls.
fn per_call<T>(count: usize, mut call: impl FnMut() -> T) -> f64 {
    let begin = Instant::now();
    for _ in 0..count {
        black_box(call());
    }
    begin.elapsed().as_nanos() as f64 / count as f64
}

/// Reading the field of a header, whichever way it is written.
fn header_keys(rounds: usize) {
    fn parse(field: &[u8]) -> impl FnMut() -> f64 {
        move || per_call(1_000, || structured::parse(black_box(field), false).map(|key| key.len()))
    }
    let long = vec![b'k'; 255];
    let quoted = [b"\"", &long[..], b"\""].concat();
    let rounds = Rounds::new()
        .case("bare, 36 bytes", parse(b"8e03978e-40d5-43e8-bc93-6894a57f9324"))
        .case("a string, 36 bytes", parse(b"\"8e03978e-40d5-43e8-bc93-6894a57f9324\""))
        .case("a string with parameters", parse(b"\"8e03978e-40d5-43e8-bc93-6894a57f9324\";v=1;exact"))
        .case("bare, 255 bytes", parse(&long))
        .case("a string, 255 bytes", parse(&quoted))
        .case("neither", parse(b"8e03978e-40d5-43e8-bc93-6894a57f9324,b"))
        .run(rounds);
    rounds.show("the field of a key", "bare, 36 bytes");
}

fn fields_of(count: usize) -> HeaderMap {
    let field = |number| {
        let name = HeaderName::try_from(format!("x-header-{number}")).expect("a name");
        (name, HeaderValue::from_static("some value of a header"))
    };
    (0..count).map(field).collect()
}

fn text(key: &str) -> impl FnMut() -> f64 {
    move || per_call(1_000, || RecordKey::new(black_box("/orders"), Some("ann"), black_box(key)))
}

fn keys(rounds: usize) {
    let made = RecordKey::new("/orders", Some("ann"), "8e03978e-40d5-43e8-bc93-6894a57f9324").expect("a key");
    let long = "k".repeat(255);
    let rounds = Rounds::new()
        .case("key of 36 bytes", text("8e03978e-40d5-43e8-bc93-6894a57f9324"))
        .case("key of 255 bytes", text(&long))
        .case("key from its bytes", || per_call(1_000, || RecordKey::from_bytes(black_box(made.as_bytes()))))
        .run(rounds);
    rounds.show("keys", "key of 36 bytes");
}

/// The digest of a body beside the hash of the same bytes.
fn fingerprints(rounds: usize) {
    for (size, count) in [(31, 1_000), (1 << 10, 300), (64 << 10, 10), (MEBIBYTE, 2)] {
        let body = vec![b'x'; size];
        let rounds = Rounds::new()
            .case("hash", || per_call(count, || Sha256::digest(black_box(&body))))
            .case("fingerprint", || per_call(count, || Fingerprint::builder().part(black_box(&body)).build()))
            .run(rounds);
        rounds.show(&format!("{size} bytes"), "hash");
    }
}

/// What the fingerprint of a large body adds to a first request, in units of the hash of the same bytes.
fn large_bodies(rounds: usize) {
    let body = Bytes::from(vec![b'x'; MEBIBYTE]);
    let runtime = orders::runtime();
    let large = |key| request(Method::POST, Some(key), body.clone());
    let app = || orders().layer(IdempotencyLayer::new(MemoryStore::new()));
    let (plain, with) = (orders(), app());
    let without = orders().layer(IdempotencyLayer::new(MemoryStore::new()).fingerprint(fingerprint::off()));
    let (mut number, mut other) = (0, 0);
    let rounds = Rounds::new()
        .case("plain", || time(&runtime, &plain, StatusCode::CREATED, 3, || large(0)))
        .case("hash", || per_call(3, || Sha256::digest(black_box(&body))))
        .case("first", || {
            time(&runtime, &with, StatusCode::CREATED, 3, || {
                number += 1;
                large(number)
            })
        })
        .case("first, no fingerprint", || {
            time(&runtime, &without, StatusCode::CREATED, 3, || {
                other += 1;
                large(other)
            })
        })
        .run(rounds * 5);
    rounds.show("a body of 1 MiB", "hash");
    let share = rounds.difference("first", "first, no fingerprint", "hash");
    let whole = rounds.difference("first", "plain", "hash");
    println!("  the fingerprint is {:.3} of the hash, the layer {:.3}", share.median, whole.median);
    row("fingerprint", share.median);
    row("large-body", whole.median);
}

/// Keeping and replaying, by what the answer is like.
fn answers(rounds: usize) {
    fn app(headers: usize, size: usize) -> Router {
        let body = Bytes::from(vec![b'x'; size]);
        let map = fields_of(headers);
        let handler = move |_: Bytes| std::future::ready((StatusCode::CREATED, map.clone(), body.clone()));
        Router::new().route("/orders", post(handler))
    }
    let runtime = orders::runtime();
    for (headers, size) in [(0, 256), (8, 256), (0, 16 << 10), (0, 256 << 10)] {
        let plain = app(headers, size);
        let layered = plain.clone().layer(IdempotencyLayer::new(MemoryStore::new()));
        let mut new = 0;
        let rounds = Rounds::new()
            .case("plain", || time(&runtime, &plain, StatusCode::CREATED, 500, || order(0)))
            .case("first", || {
                // A new store each time, since large answers take room.
                let app = plain.clone().layer(IdempotencyLayer::new(MemoryStore::new()));
                time(&runtime, &app, StatusCode::CREATED, 100, || {
                    new += 1;
                    order(new)
                })
            })
            .case("replay", || time(&runtime, &layered, StatusCode::CREATED, 500, || order(0)))
            .run(rounds);
        rounds.show(&format!("answer: {headers} headers, {size} bytes"), "plain");
    }
}
