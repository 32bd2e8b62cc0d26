//! The edges for HTTP: the builders of the layers, and Axum's extractors.
//!
//! A builder changes the settings of `http` and nothing else; the service is `http::Idempotency`. What one layer can be
//! configured with, every layer can: `tests/house.rs` compares their calls.

#[cfg(feature = "axum")]
pub(crate) mod extractors;
mod idempotency;
mod setters;
mod token;

pub use self::{
    idempotency::{IdempotencyLayer, Preset},
    token::TokenLayer,
};
