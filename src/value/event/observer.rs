//! Who receives events.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::Event;

/// A receiver of events, for metrics and audits.
///
/// It is called where events occur, on the request's own path, so it should be quick and must not block. Its panics are
/// caught and change nothing, since it is called while keys are claimed.
///
/// An observer in an `Arc` is one too, so that the application can keep the other half:
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// use tower_idempotency::{Event, IdempotencyLayer, MemoryStore, Observer};
///
/// #[derive(Default)]
/// struct Replays(AtomicU64);
///
/// impl Observer for Replays {
///     fn on_event(&self, event: &Event<'_>) {
///         if let Event::Replayed { .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// let replays = Arc::new(Replays::default());
/// let layer = IdempotencyLayer::new(MemoryStore::new()).observer(replays.clone());
/// assert_eq!(replays.0.load(Ordering::Relaxed), 0);
/// # drop(layer);
/// ```
///
/// So is a closure:
///
/// ```
/// use tower_idempotency::{Event, IdempotencyLayer, MemoryStore};
///
/// let layer = IdempotencyLayer::new(MemoryStore::new()).observer(|event: &Event<'_>| {
///     if let Event::ClaimLost { key, attempt, .. } = event {
///         eprintln!("attempt {attempt} of {} was overtaken", key.route());
///     }
/// });
/// # drop(layer);
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Handles an event.
    fn on_event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn on_event(&self, event: &Event<'_>) {
        self(event);
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn on_event(&self, event: &Event<'_>) {
        (**self).on_event(event);
    }
}

/// Observers, each of which sees every event.
#[derive(Clone, Default)]
pub(crate) struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer) {
        self.0.push(Arc::new(observer));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reports an event.
    pub(crate) fn report(&self, event: &Event<'_>) {
        for observer in &self.0 {
            // A panic of the observer must not end the run. The panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| observer.on_event(event)));
        }
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.0.len())
    }
}
