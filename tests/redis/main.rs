//! The Redis store keeps the rules of every store, and goes through what a server goes through.
//!
//! Each test starts a `redis-server` of its own.
#![cfg(all(feature = "redis", feature = "testing"))]

mod server;
mod suite;
