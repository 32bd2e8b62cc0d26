//! [`IdempotencyLayer`] and its presets.

mod answers;
mod exceptions;
mod layer;
mod policy;
mod preset;

pub use self::{layer::IdempotencyLayer, preset::Preset};
