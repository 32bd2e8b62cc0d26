//! [`IdempotencyLayer`] and its presets.

mod layer;
mod preset;

pub use self::{layer::IdempotencyLayer, preset::Preset};
