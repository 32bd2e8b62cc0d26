use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use crate::value::millis;

/// A clock that stands still until it is advanced.
///
/// It begins at the same time in every test, and its clones are the same clock.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::testing::ManualClock;
///
/// let clock = ManualClock::new();
/// let begin = clock.now();
/// clock.clone().advance(Duration::from_secs(30));
/// assert_eq!(clock.now(), begin + 30_000);
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicU64>);

impl ManualClock {
    /// 2025-01-01T00:00:00Z
    const BEGIN: u64 = 1_735_689_600_000;

    /// Creates a clock that stands at the beginning of the year 2025.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(AtomicU64::new(Self::BEGIN)))
    }

    /// Advances the clock. Anything less than a millisecond is dropped.
    pub fn advance(&self, time: Duration) {
        let millis = millis(time);
        let later = |now: u64| Some(now.saturating_add(millis));
        // The closure never declines.
        let _ = self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// Returns the milliseconds since the beginning of 1970.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(feature = "memory")]
impl crate::store::Clock for ManualClock {
    fn now(&self) -> u64 {
        self.now()
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_at_the_end_of_time() {
        let clock = ManualClock::new();
        clock.advance(Duration::MAX);
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), u64::MAX);
    }
}
