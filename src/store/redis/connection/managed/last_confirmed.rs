use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use tokio::{
    sync::{Mutex, MutexGuard},
    time::Instant,
};

use crate::value::millis;

/// After this long without an answer, another server may be the master, and the former one may be back without knowing
/// that.
const SILENCE: Duration = Duration::from_secs(1);

/// The time at which a server that sentinels monitor was last known to be the master.
pub(in crate::store::redis) struct LastConfirmed {
    /// The origin of `last`, which is an atomic number.
    began: Instant,
    /// Milliseconds after `began`.
    last: AtomicU64,
    /// Held by the one caller that asks.
    confirming: Mutex<()>,
}

impl LastConfirmed {
    /// Creates it for a server that has not answered yet.
    pub(in crate::store::redis) fn never() -> Self {
        Self { began: Instant::now(), last: AtomicU64::new(0), confirming: Mutex::new(()) }
    }

    /// Records an answer.
    pub(in crate::store::redis) fn now(&self) {
        self.last.store(self.elapsed(), Relaxed);
    }

    /// Waits for the turn to ask the sentinels.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.confirming.lock().await
    }

    /// Returns whether the last answer is older than a second.
    pub(super) fn is_long_ago(&self) -> bool {
        u128::from(self.elapsed().saturating_sub(self.last.load(Relaxed))) >= SILENCE.as_millis()
    }

    fn elapsed(&self) -> u64 {
        millis(self.began.elapsed())
    }
}
