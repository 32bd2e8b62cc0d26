//! What several tests need.
#![allow(dead_code, unreachable_pub)] // each test takes what it needs

pub mod frames;
pub mod kept_request;
pub mod ownership;
#[cfg(feature = "testing")]
pub mod shop;
pub mod steps;
pub mod windows;
#[cfg(feature = "testing")]
pub mod wire;

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{
    body::Body,
    http::{Request, StatusCode},
    response::Response,
};
use http_body_util::BodyExt;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Counts, in whatever clones it has.
#[derive(Clone, Debug, Default)]
pub struct Counter(Arc<AtomicUsize>);

impl Counter {
    /// The number of this call, from 1.
    pub fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

pub fn post(path: &str, key: &str, body: &str) -> Request<Body> {
    Request::post(path).header("Idempotency-Key", key).body(Body::from(body.to_owned())).unwrap()
}

/// Status, whether it is a replay, and the body.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub status: StatusCode,
    pub replayed: bool,
    pub body: String,
}

impl Seen {
    pub fn first(status: u16, body: &str) -> Self {
        Self { status: StatusCode::from_u16(status).unwrap(), replayed: false, body: body.to_owned() }
    }

    pub fn replay(status: u16, body: &str) -> Self {
        Self { replayed: true, ..Self::first(status, body) }
    }

    /// The name of the problem that it is.
    pub fn problem(&self) -> String {
        let problem: serde_json::Value = serde_json::from_str(&self.body).expect("a problem document");
        assert_eq!(problem["status"], self.status.as_u16());
        let kind = problem["type"].as_str().expect("a type");
        kind.rsplit_once('#').expect("a name").1.to_owned()
    }
}

pub async fn see<B>(response: Response<B>) -> Seen
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a whole body").to_bytes();
    Seen {
        status: parts.status,
        replayed: parts.headers.contains_key("idempotent-replayed"),
        body: String::from_utf8(body.to_vec()).expect("text"),
    }
}

/// Sends one request over a connection of its own; gives back everything that came.
pub async fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Seconds.
pub const DAY: u64 = 24 * 60 * 60;

/// Of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub fn second_of_day(date: &str) -> u64 {
    let time = date.strip_suffix(" GMT").and_then(|date| date.get(17..)).unwrap();
    time.split(':').fold(0, |seconds, part| seconds * 60 + part.parse::<u64>().unwrap())
}

/// A POST as it goes over the wire.
pub fn wire(path: &str, key: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
