//! [`IdempotencyLayer`] and its presets.

mod answers;
mod exceptions;
mod layer;
mod preset;

pub use self::{layer::IdempotencyLayer, preset::Preset};
