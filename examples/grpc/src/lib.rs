//! A service of transfers by gRPC, and a client that retries.
//!
//! ```sh
//! cargo run -p grpc-transfers -- serve 127.0.0.1:50051
//! cargo run -p grpc-transfers -- send http://127.0.0.1:50051 order-7 ann 100
//! ```
//!
//! The client sends a key with each transfer, and repeats the call until it knows how it ended. `client.py` does the same
//! in Python, by the retry policy of gRPC. The server makes each transfer once: its records are in memory, in Redis, or in
//! PostgreSQL in one transaction with the transfer.

pub mod client;
pub mod ledger;
pub mod messages;
pub mod server;

/// What `build.rs` generates.
#[allow(missing_docs, clippy::pedantic, unreachable_pub, rust_2018_idioms)]
pub mod api {
    include!(concat!(env!("OUT_DIR"), "/bank.v1.Transfers.rs"));
}

/// An error of any kind.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
