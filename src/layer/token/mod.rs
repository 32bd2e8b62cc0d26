//! [`TokenLayer`]: requires a token for each request, and spends it.
//!
//! - `layer`: purpose, principal, and the engine that it shares with `IdempotencyLayer`. `policy`, `answers`,
//!   `exceptions`: as there.
//! - `endpoint`: a route that issues tokens.

#[cfg(feature = "axum")]
mod endpoint;
mod layer;
mod setters;

pub use self::layer::TokenLayer;
