//! Asking the sentinels before a command, if the server has been silent for a second.
//!
//! A master that stood still may have been replaced without knowing it, and would accept claims that are lost later. A
//! process that was busy notices by its broken or silent connection; one that was idle would not, so it asks first.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::Mutex,
    time::{Instant, timeout},
};

use super::{ManagedConnection, OpenConnection};
use crate::{store::redis::error::CommandError, value::millis};

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

    /// Returns whether the last answer is older than a second.
    fn is_long_ago(&self) -> bool {
        u128::from(self.elapsed().saturating_sub(self.last.load(Relaxed))) >= SILENCE.as_millis()
    }

    fn elapsed(&self) -> u64 {
        millis(self.began.elapsed())
    }
}

impl ManagedConnection {
    /// Returns the connection. If nothing was answered on it for a second, the sentinels are queried first.
    pub(in crate::store::redis) async fn confirmed(self: &Arc<Self>) -> Result<OpenConnection, CommandError> {
        if self.target.has_sentinels() && self.confirmed_at.is_long_ago() {
            Box::pin(self.confirm()).await;
        }
        self.connected().await
    }

    /// Queries the sentinels, once for all callers. If they do not answer, nothing changes: the master may be reachable
    /// although they are not.
    async fn confirm(self: &Arc<Self>) {
        let _confirming = self.confirmed_at.confirming.lock().await;
        let Some(current) = self.current().filter(|_| self.confirmed_at.is_long_ago()) else { return };
        let named = timeout(self.limits.connect, self.target.address()).await;
        if let Ok(Ok(Some(address))) = named
            && address != current.address
        {
            self.give_up(current.number);
        }
        self.confirmed_at.now();
    }
}
