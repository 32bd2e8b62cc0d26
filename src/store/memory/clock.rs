//! The clock of a store. It is monotonic, so a change of the machine's clock lets no record expire.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use crate::value::millis;

/// The clock of a [`MemoryStore`](super::MemoryStore).
///
/// The default is the wall clock when the store is created and Tokio's time from then on. So a change of the machine's
/// clock makes no records expire, and tests can use Tokio's paused time.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tower_idempotency::{MemoryStore, store::Clock};
///
/// struct Ticks(AtomicU64);
///
/// impl Clock for Ticks {
///     fn now(&self) -> u64 {
///         self.0.load(Ordering::Relaxed)
///     }
/// }
///
/// let store = MemoryStore::builder().clock(Ticks(AtomicU64::new(0))).build();
/// # drop(store);
/// ```
pub trait Clock: Send + Sync + 'static {
    /// Returns the milliseconds since the Unix epoch. They must never go back.
    fn now(&self) -> u64;
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> u64 {
        (**self).now()
    }
}

/// The wall clock when it was created, and monotonic time from then on.
pub(super) struct SystemClock {
    /// The wall clock at the time of creation.
    wall: Duration,
    since: Instant,
}

impl SystemClock {
    pub(super) fn now() -> Self {
        let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { wall, since: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> u64 {
        millis(self.wall.saturating_add(self.since.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn tokios_time_drives_the_default() {
        let clock = SystemClock::now();
        let before = clock.now();
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clock.now() - before, 90_000);
    }
}
