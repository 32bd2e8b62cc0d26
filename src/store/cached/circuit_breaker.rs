//! A circuit breaker for the cache: after a failure it is not asked for a second, so that an outage of the cache costs
//! one timeout a second.

use std::{
    fmt::Display,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::Instant;

use crate::value::millis;

/// How long a cache that failed is not used.
const OPEN_FOR: Duration = Duration::from_secs(1);

/// A circuit breaker: keeps the cache unused for a moment after it has failed.
pub(super) struct CircuitBreaker {
    began: Instant,
    /// Milliseconds since then.
    until: AtomicU64,
}

impl CircuitBreaker {
    pub(super) fn is_open(&self) -> bool {
        let until = self.until.load(Relaxed);
        until > 0 && self.elapsed() < until
    }

    pub(super) fn trip(&self, why: &dyn Display) {
        self.until.store(self.elapsed().saturating_add(millis(OPEN_FOR)), Relaxed);
        warn_of(why);
    }

    fn elapsed(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self { began: Instant::now(), until: AtomicU64::new(0) }
    }
}

#[cfg(feature = "tracing")]
fn warn_of(why: &dyn Display) {
    tracing::warn!(error = %why, "the front is passed over for a second; the store behind answers");
}

#[cfg(not(feature = "tracing"))]
fn warn_of(_: &dyn Display) {}
