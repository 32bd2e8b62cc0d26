//! Guides. Their examples are tests.

/// The order of layers.
#[doc = include_str!("../docs/layers.md")]
pub mod layers {}

/// Refusals.
#[doc = include_str!("../docs/refusals.md")]
pub mod refusals {}
