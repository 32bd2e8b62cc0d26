//! [`IdempotencyLayer`] and the service that it makes.

mod future;
mod layer;
mod preset;
mod service;

pub use self::{future::ResponseFuture, layer::IdempotencyLayer, preset::Preset, service::Idempotency};
