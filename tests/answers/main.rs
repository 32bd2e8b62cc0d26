//! What becomes of answers and bodies: what is kept, what comes back, and what goes through as it comes.
#![cfg(all(feature = "axum", feature = "memory"))]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/frames.rs"]
mod frames;

mod fields;
mod kept;
mod lab;
mod limits;
mod policies;
mod refusals;
mod requests;
mod streams;
