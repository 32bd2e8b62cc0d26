//! Clients over real sockets, HTTP/1.1 and HTTP/2: those that leave, those that send too much, and those that behave.
#![cfg(all(feature = "axum", feature = "memory"))]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/frames.rs"]
mod frames;

mod client;
mod expecting;
mod keeping_on;
mod leaving;
mod site;
mod streaming;
mod trailers;
mod wire;
