//! [`TokenLayer`]: requires a token for each request, and spends it.
//!
//! - `layer`: purpose, principal, and the engine that it shares with `IdempotencyLayer`. `policy`, `answers`,
//!   `exceptions`: as there.
//! - `endpoint`: a route that issues tokens.

mod answers;
#[cfg(feature = "axum")]
mod endpoint;
mod exceptions;
mod layer;
mod policy;

pub use self::layer::TokenLayer;
