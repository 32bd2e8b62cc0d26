//! One token, one operation: stored tokens and signed ones, on every store.
#![cfg(all(feature = "axum", feature = "form", feature = "memory", feature = "testing"))]

#[path = "../common/mod.rs"]
mod common;
mod ends;
mod memory;
mod pages;
mod places;
mod rules;
mod shop;
#[cfg(feature = "signed-tokens")]
mod signed;
mod stores;
