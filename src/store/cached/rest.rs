use std::{
    fmt::Display,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tokio::time::Instant;

use crate::value::millis;

/// How long a cache that failed is not used.
const PAUSE: Duration = Duration::from_secs(1);

/// A circuit breaker: keeps the cache unused for a moment after it has failed.
pub(super) struct Rest {
    began: Instant,
    /// Milliseconds since then.
    until: AtomicU64,
}

impl Rest {
    pub(super) fn is_on(&self) -> bool {
        let until = self.until.load(Relaxed);
        until > 0 && self.elapsed() < until
    }

    pub(super) fn begin(&self, why: &dyn Display) {
        self.until.store(self.elapsed().saturating_add(millis(PAUSE)), Relaxed);
        warn_of(why);
    }

    fn elapsed(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

impl Default for Rest {
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
