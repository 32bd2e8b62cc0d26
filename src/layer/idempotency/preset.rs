use std::{fmt, sync::Arc};

use crate::layer::IdempotencyLayer;

/// Settings that a layer takes in one call; see [`IdempotencyLayer::preset`]. The module `preset` has those that come
/// with the crate.
///
/// ```
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, key, preset::Preset};
///
/// // The house's own convention.
/// fn ours() -> Preset {
///     Preset::new(|layer| layer.key(key::header("X-Request-Id")).policy(Policy::at_most_once()))
/// }
///
/// let layer = IdempotencyLayer::new(MemoryStore::new()).preset(ours());
/// # drop(layer);
/// ```
#[derive(Clone)]
#[must_use = "a preset does nothing until a layer has it"]
pub struct Preset(Arc<Apply>);

type Apply = dyn Fn(IdempotencyLayer) -> IdempotencyLayer + Send + Sync;

impl Preset {
    /// Creates a preset from the closure that adjusts a layer.
    pub fn new(apply: impl Fn(IdempotencyLayer) -> IdempotencyLayer + Send + Sync + 'static) -> Self {
        Self(Arc::new(apply))
    }

    fn apply(self, layer: IdempotencyLayer) -> IdempotencyLayer {
        (self.0)(layer)
    }
}

impl IdempotencyLayer {
    /// Applies a preset: everything that a platform or a convention asks for, in one call. Later calls adjust it.
    pub fn preset(self, preset: Preset) -> Self {
        preset.apply(self)
    }
}

impl fmt::Debug for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Preset(..)")
    }
}
