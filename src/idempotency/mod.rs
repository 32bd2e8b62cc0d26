//! [`IdempotencyLayer`] and the service that it makes.

mod future;
mod layer;
mod service;

pub use self::{future::ResponseFuture, layer::IdempotencyLayer, service::Idempotency};
