//! The edges for HTTP: the builders of the layers, and Axum's extractors.

#[cfg(feature = "axum")]
pub(crate) mod extractors;
mod idempotency;
mod token;

pub use self::{
    idempotency::{IdempotencyLayer, Preset},
    token::TokenLayer,
};
