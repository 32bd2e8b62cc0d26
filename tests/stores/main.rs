//! The conformance suite, checked itself, and the stores that need no server.
#![cfg(all(feature = "memory", feature = "testing"))]

mod cached;
mod memory;
#[cfg(feature = "sealed")]
mod sealed;
mod suite;
