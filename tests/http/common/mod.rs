//! What several tests need.
#![allow(dead_code, unreachable_pub)] // each test takes what it needs

mod counter;
pub mod frames;
pub mod kept_request;
pub mod ownership;
mod seen;
#[cfg(feature = "testing")]
pub mod shop;
pub mod steps;
pub mod windows;
#[cfg(feature = "testing")]
pub mod wire;

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

#[allow(unused_imports)] // with few features, few tests need them
pub use self::{
    counter::Counter,
    seen::{Seen, post, see},
};

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
