//! [`TokenLayer`]: requires a token for each request, and spends it.

mod answers;
#[cfg(feature = "axum")]
mod endpoint;
mod exceptions;
mod layer;
mod policy;

pub use self::layer::TokenLayer;
