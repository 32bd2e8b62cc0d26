//! The loop of a relay: fills its places, waits for what has landed, removes what was sent long ago.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::atomic::Ordering::Relaxed,
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, timeout};

use super::{OutboxStats, Relay, RelayStats, Sender, flight::Flight};
use crate::{
    sql::SqlDatabase,
    value::{Event, StoreError},
};

/// How often a running relay removes sent messages, how soon if there are more of them, and how many at most before it
/// sends again.
const PURGE_EVERY: Duration = Duration::from_secs(10);
const PURGE_ON: Duration = Duration::from_millis(100);
const PURGED_AT_ONCE: usize = 1000;

/// How many messages `run_once` sends.
const ROUND: u64 = 1000;

/// The shortest pause.
const BREATH: Duration = Duration::from_millis(10);

impl<D: SqlDatabase, S: Sender> Relay<D, S> {
    /// Sends the messages that can be sent now, and returns when none is being sent. After a thousand messages it
    /// begins with no further keys.
    ///
    /// A message that fails is [counted](RelayStats::failed), but is not an error.
    ///
    /// # Errors
    ///
    /// Returns an error if the database does, once no message is being sent.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped, the messages that are being sent are dropped at their next await. They stay leased,
    /// and are sent again when the lease has lapsed.
    ///
    /// # Panics
    ///
    /// Panics outside a Tokio runtime. If the sender panics, the relay goes on: the message counts as failed, and is
    /// sent again when the lease has lapsed.
    pub async fn run_once(&self) -> Result<RelayStats, StoreError> {
        let mut flight = Flight::new(self);
        loop {
            if !flight.has_failed() && flight.relayed().all() < ROUND {
                flight.fill().await;
            }
            if !poll_fn(|context| flight.poll_landed(context)).await {
                return flight.take_error().map_or(Ok(flight.relayed()), Err);
            }
        }
    }

    /// Sends staged messages until `stop` resolves, and then returns when none is being sent.
    ///
    /// If there is nothing to send, it looks again after `pause`, or when the outbox is [woken](super::Outbox::wake). If the
    /// database fails, it tries again after `pause`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use tower_idempotency::sql::outbox::{Outbox, Relay, StagedMessage};
    /// # async fn run(outbox: Outbox<sqlx::Sqlite>) {
    /// # let sender = |_: StagedMessage| async { Ok::<_, std::io::Error>(()) };
    /// let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    /// let relay = Relay::new(outbox.clone(), sender);
    /// let running = tokio::spawn(async move { relay.run(Duration::from_secs(1), async { _ = stopped.await }).await });
    /// // At shutdown:
    /// drop(stop);
    /// running.await.unwrap();
    /// # }
    /// ```
    ///
    /// # Cancellation
    ///
    /// See [`run_once`](Self::run_once).
    ///
    /// # Panics
    ///
    /// See [`run_once`](Self::run_once).
    pub async fn run(&self, pause: Duration, stop: impl Future<Output = ()>) {
        let mut stop = pin!(stop);
        let mut flight = Flight::new(self);
        let stopping = flight.stopping();
        let mut purge = Instant::now();
        while !stopping.load(Relaxed) {
            {
                let mut turn = pin!(async {
                    flight.fill().await;
                    if Instant::now() >= purge {
                        purge = self.purge_some().await;
                    }
                });
                poll_fn(|context| {
                    if !stopping.load(Relaxed) && stop.as_mut().poll(context).is_ready() {
                        stopping.store(true, Relaxed);
                    }
                    turn.as_mut().poll(context)
                })
                .await;
            }
            let error = flight.take_error().inspect(|error| tell("messages cannot be relayed", error));
            let mut waiting = pin!(timeout(pause.max(BREATH), self.outbox.woken()));
            poll_fn(|context| {
                if stopping.load(Relaxed) || stop.as_mut().poll(context).is_ready() {
                    stopping.store(true, Relaxed);
                    return Poll::Ready(());
                }
                while flight.poll_landed(context) == Poll::Ready(true) {
                    // If the database has failed, it is not queried again before the pause is over.
                    if error.is_none() {
                        return Poll::Ready(());
                    }
                }
                waiting.as_mut().poll(context).map(drop)
            })
            .await;
        }
        while poll_fn(|context| flight.poll_landed(context)).await {}
    }

    /// Removes messages that were sent long ago, and returns when to do so again.
    async fn purge_some(&self) -> Instant {
        let start = Instant::now();
        let removed = self.outbox.purge(self.retention, PURGED_AT_ONCE).await;
        self.outbox.store.report_purge(&self.outbox.table, removed.as_ref().map(|removed| Some(*removed)), start);
        let more = removed.is_ok_and(|removed| removed == PURGED_AT_ONCE as u64);
        if !more {
            self.report_backlog().await;
        }
        Instant::now() + if more { PURGE_ON } else { PURGE_EVERY }
    }

    /// Reports what waits in the outbox, if anybody observes.
    async fn report_backlog(&self) {
        let observers = &self.outbox.store.shared.observers;
        if observers.is_empty() {
            return;
        }
        if let Ok(OutboxStats { unsent, oldest, .. }) = self.outbox.stats().await {
            observers.report(&Event::OutboxBacklog { unsent, oldest });
        }
    }
}

#[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
fn tell(what: &str, error: &StoreError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, kind = ?error.kind(), "{what}");
}
