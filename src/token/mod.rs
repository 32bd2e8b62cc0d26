//! Tokens that the server issues, each good for one operation.

#[cfg(feature = "axum")]
mod endpoint;
mod issuer;
mod layer;

pub use self::{issuer::Tokens, layer::TokenLayer};
