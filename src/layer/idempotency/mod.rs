//! [`IdempotencyLayer`] and its presets.
//!
//! - `layer`: who, what and where: key, scope, store, limits. `policy`: the axes of the policy, one call each.
//! - `answers`: headers and refusals. `exceptions`: what is left out. `preset`: many settings as one value.

mod layer;
mod preset;
mod setters;

pub use self::{layer::IdempotencyLayer, preset::Preset};
