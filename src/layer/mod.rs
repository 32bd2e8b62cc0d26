//! The edges for HTTP: the builders of the layers, and Axum's extractors.
//!
//! A builder changes the settings of `http` and nothing else; the service is `http::Idempotency`. What one layer can be
//! configured with, every layer can: `tests/house.rs` compares their calls. `message_log` is another kind of layer: it
//! writes what comes in to a table, and has a service of its own.

#[cfg(feature = "axum")]
pub(crate) mod extractors;
mod idempotency;
#[cfg(feature = "_sql")]
pub(crate) mod message_log;
mod setters;
mod token;

#[cfg(feature = "_sql")]
pub use self::message_log::MessageLogLayer;
pub use self::{
    idempotency::{IdempotencyLayer, Preset},
    token::TokenLayer,
};
