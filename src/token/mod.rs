//! Tokens that the server issues, each good for one operation.

mod answers;
#[cfg(feature = "axum")]
mod endpoint;
mod exceptions;
mod issuer;
mod layer;
mod policy;

pub use self::{issuer::Tokens, layer::TokenLayer};
