use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

/// What a layer does with its requests; see [`Switch`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Protection {
    /// The layer protects its route.
    #[default]
    On,
    /// The layer reports what it would refuse or replay, and lets it through.
    ObserveOnly,
    /// The layer lets everything through.
    Off,
}

/// A handle that turns the protection of layers off and on while the service runs.
///
/// Clones are handles on the same switch. One switch for all layers and one for each route go together: a layer with
/// several switches does what the one says that protects least.
///
/// ```
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, Protection, Switch};
///
/// let (all, orders) = (Switch::new(), Switch::new());
/// let layer = IdempotencyLayer::new(MemoryStore::new()).switch(all.clone()).switch(orders.clone());
/// # drop(layer);
///
/// // Later, by an operator's request:
/// orders.set(Protection::ObserveOnly);
/// assert_eq!((all.get(), orders.get()), (Protection::On, Protection::ObserveOnly));
/// ```
///
/// # What each position does
///
/// | | [`On`](Protection::On) | [`ObserveOnly`](Protection::ObserveOnly) | [`Off`](Protection::Off) |
/// | --- | --- | --- | --- |
/// | a first request | runs, and its answer is kept | the same | runs, and nothing is written |
/// | a duplicate | is replayed or refused | runs too, and nothing is written for it: [`Event::WouldReplay`](crate::Event::WouldReplay), [`WouldRefuse`](crate::Event::WouldRefuse) | runs too |
/// | a request without a key or scope, with a bad one, or with another content | is refused | runs: `WouldRefuse` | runs |
/// | the store fails | is refused, unless the layer fails open | runs: `WouldRefuse` | is not asked |
/// | [`verify`](crate::IdempotencyLayer::verify), the rejection of an extractor, limits of the request body | hold | hold | `verify` holds |
///
/// A switch changes nothing about what has begun: a run that was claimed while the switch was on ends as it would have,
/// and its answer is kept. Records that were settled before stay, so a duplicate that comes after the switch was turned on
/// again receives the kept answer. What ran while it was off has no record: its duplicate runs once more after that. A
/// handler cannot distinguish a duplicate that is let through from a first request: there is no
/// [`Operation`](crate::Operation), and in transaction mode no transaction, so a handler that takes `Tx` fails for it.
///
/// Each layer reports a change as [`Event::Switched`](crate::Event::Switched), with the first request that comes after
/// it. While a layer is not on, an event of `tracing` at level WARN names each of its routes once a minute.
///
/// A layer reads its switches once for each request, without a lock.
#[derive(Clone, Default)]
pub struct Switch(Arc<AtomicU8>);

impl Switch {
    /// Creates a switch that is on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what the layers that have this switch do from their next request on.
    pub fn set(&self, protection: Protection) {
        self.0.store(protection as u8, Ordering::Release);
    }

    /// Returns what was set last.
    #[must_use]
    pub fn get(&self) -> Protection {
        Protection::from_u8(self.0.load(Ordering::Acquire))
    }
}

impl Protection {
    pub(crate) fn from_u8(number: u8) -> Self {
        match number {
            0 => Self::On,
            1 => Self::ObserveOnly,
            _ => Self::Off,
        }
    }
}

impl fmt::Debug for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Switch").field(&self.get()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_shows_what_was_set_last() {
        let switch = Switch::new();
        let shown = [Protection::On, Protection::ObserveOnly, Protection::Off].map(|protection| {
            switch.clone().set(protection);
            format!("{switch:?}")
        });
        assert_eq!(shown, ["Switch(On)", "Switch(ObserveOnly)", "Switch(Off)"]);
    }
}
