use std::{
    fmt,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::Poll,
    time::Duration,
};

use tokio::time::{Instant, timeout};

use crate::{
    store::{Outbox, SqlDatabase},
    value::StoreError,
};

use super::{Sender, flight::Flight};

/// How often a relay that runs removes what was sent, how soon if there is more of it, and how much at most before it
/// sends again.
const PURGE_EVERY: Duration = Duration::from_secs(10);
const PURGE_ON: Duration = Duration::from_millis(100);
const PURGED_AT_ONCE: usize = 1000;

/// How many messages a relay sends that runs once.
const ROUND: u64 = 1000;

/// How long a lease is, in times that a message may take to be sent: one to come to it, one to send it, one to mark it.
const LEASE: u32 = 3;

/// No pause is shorter.
const BREATH: Duration = Duration::from_millis(10);

/// Sends what is staged in an [`Outbox`].
///
/// ```
/// use std::{sync::{Arc, Mutex}, time::Duration};
/// use tower_idempotency::{SqliteStore, outbox::{Message, StagedMessage, Relay}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("idempotency-relay-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("shop.db");
/// let store = SqliteStore::open(&path).await?;
/// let outbox = store.outbox();
/// outbox.migrate().await?;
///
/// let mut transaction = store.pool().begin().await?;
/// // … the order is marked as paid …
/// outbox.stage(&mut transaction, &Message::new("order.paid", "7").key("order-7")).await?;
/// transaction.commit().await?;
///
/// let broker = Arc::new(Mutex::new(Vec::new()));
/// let sender = { let broker = broker.clone(); move |outgoing: StagedMessage| {
///     broker.lock().unwrap().push(outgoing.message.topic);
///     async { Ok::<_, std::io::Error>(()) }
/// } };
/// let relayed = Relay::new(outbox, sender).run_once().await?;
/// assert_eq!(relayed.sent, 1);
/// assert_eq!(*broker.lock().unwrap(), ["order.paid"]);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// ```
///
/// # What it promises
///
/// - Every committed message is sent at least once. It is sent again where nobody knows whether it was: after a crash
///   or a timeout, when the relay was dropped, and when the database could not be told.
/// - The messages of a key are sent in [their order](Outbox#order): the next one once the one before it is marked.
/// - One that fails waits, and with it those behind it of the same key; other keys go on. There is no last try: what
///   can never be sent is to be found by [`Outbox::unsent`] and taken out by [`Outbox::discard`].
/// - Messages that were never tried go before those that failed; of these, the one that is due for the longest goes first.
///   One topic has no more than [a part](Self::concurrency_per_topic) of the relay, and while its messages fail only one
///   at a time, so that a destination that does not answer holds up no other one.
/// - Any number of relays may run. Each leases what it sends, by the database's clock, for three times the
///   [`send_timeout`](Self::send_timeout), and others leave that, and what is behind it, alone. A relay that died holds
///   up the messages that it was at, and their keys, for as long.
///
/// What a lease cannot do: a process that is halted while it sends, for longer than two thirds of a lease, sends what it
/// was at when it goes on, though others have sent this and what comes after. A consumer that knows the ids is not misled.
#[must_use = "a relay does nothing until it runs"]
pub struct Relay<D: SqlDatabase, S> {
    pub(super) outbox: Outbox<D>,
    pub(super) sender: Arc<S>,
    at_once: usize,
    per_topic: Option<usize>,
    pub(super) send_timeout: Duration,
    pub(super) backoff: [Duration; 2],
    retention: Duration,
}

impl<D: SqlDatabase, S: Sender> Relay<D, S> {
    /// A relay that sends by `sender`.
    pub fn new(outbox: Outbox<D>, sender: S) -> Self {
        Self {
            outbox,
            sender: Arc::new(sender),
            at_once: 8,
            per_topic: None,
            send_timeout: Duration::from_secs(10),
            backoff: [Duration::from_secs(1), Duration::from_secs(300)],
            retention: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// How many messages are on their way at once, each of another key or without one. Default: 8.
    pub fn at_once(mut self, messages: usize) -> Self {
        self.at_once = messages.max(1);
        self
    }

    /// Bounds how many messages of one topic are on their way at once, so that others can be sent while its destination
    /// does not answer. A topic whose last message failed is tried with one message at a time until one is sent.
    /// Default: half of [`at_once`](Self::at_once), and at least one.
    pub fn concurrency_per_topic(mut self, messages: usize) -> Self {
        self.per_topic = Some(messages.max(1));
        self
    }

    /// How long a message may take to be sent; one that takes longer has failed, and may have been sent. At least a
    /// millisecond. Default: ten seconds.
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// How long a message that has failed waits, and with it its key: `first` after the first time, then twice as long
    /// each time, up to `longest`; a random part of up to a half is taken off. Default: one second, five minutes.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = [first, longest];
        self
    }

    /// How long messages stay in the table after they were sent; [`run`](Self::run) removes older ones. Default: a day.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    /// Sends what can be sent now, and returns when none is on its way. After a thousand messages it begins with no other
    /// keys.
    ///
    /// A message that fails is [counted](RelayStats::failed), and is no error.
    ///
    /// # Errors
    ///
    /// Those of the database, once nothing is on its way.
    ///
    /// # Cancellation
    ///
    /// Dropped, it drops what is being sent, where that next waits. What was on its way stays leased, and is sent again
    /// when the lease has lapsed.
    ///
    /// # Panics
    ///
    /// Outside a Tokio runtime. A sender that panics does not end the relay: its message has failed, and is sent again
    /// when the lease has lapsed.
    pub async fn run_once(&self) -> Result<RelayStats, StoreError> {
        let mut flight = Flight::new(self);
        loop {
            if !flight.is_troubled() && flight.relayed().all() < ROUND {
                flight.fill().await;
            }
            if !poll_fn(|context| flight.poll_landed(context)).await {
                return flight.trouble().map_or(Ok(flight.relayed()), Err);
            }
        }
    }

    /// Sends what is staged until `stop` resolves, and then returns when none is on its way.
    ///
    /// If there is nothing to send it looks again after `pause`, or when the outbox is [woken](Outbox::wake). A
    /// database that fails is tried again after `pause`.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use tower_idempotency::{outbox::{Outbox, StagedMessage, Relay}};
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
    /// As [`run_once`](Self::run_once).
    ///
    /// # Panics
    ///
    /// As [`run_once`](Self::run_once).
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
            let trouble = flight.trouble().inspect(|error| tell("messages cannot be relayed", error));
            let mut waiting = pin!(timeout(pause.max(BREATH), self.outbox.woken()));
            poll_fn(|context| {
                if stopping.load(Relaxed) || stop.as_mut().poll(context).is_ready() {
                    stopping.store(true, Relaxed);
                    return Poll::Ready(());
                }
                while flight.poll_landed(context) == Poll::Ready(true) {
                    // A database that fails is not asked again before the pause is over.
                    if trouble.is_none() {
                        return Poll::Ready(());
                    }
                }
                waiting.as_mut().poll(context).map(drop)
            })
            .await;
        }
        while poll_fn(|context| flight.poll_landed(context)).await {}
    }

    /// Removes what was sent long ago, and gives when to do so again.
    async fn purge_some(&self) -> Instant {
        let removed = self.outbox.purge(self.retention, PURGED_AT_ONCE).await;
        let removed = removed.inspect_err(|error| tell("sent messages cannot be removed", error));
        let more = removed.is_ok_and(|removed| removed == PURGED_AT_ONCE as u64);
        Instant::now() + if more { PURGE_ON } else { PURGE_EVERY }
    }

    pub(super) fn concurrency(&self) -> usize {
        self.at_once
    }

    pub(super) fn most_of_a_topic(&self) -> usize {
        self.per_topic.unwrap_or(self.at_once / 2).clamp(1, self.at_once)
    }

    pub(super) fn lease(&self) -> Duration {
        self.send_timeout.saturating_mul(LEASE)
    }
}

#[cfg_attr(not(feature = "tracing"), allow(unused_variables))]
fn tell(what: &str, error: &StoreError) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, kind = ?error.kind(), "{what}");
}

impl<D: SqlDatabase, S> Clone for Relay<D, S> {
    fn clone(&self) -> Self {
        Self { outbox: self.outbox.clone(), sender: Arc::clone(&self.sender), ..*self }
    }
}

impl<D: SqlDatabase, S> fmt::Debug for Relay<D, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("outbox", &self.outbox)
            .field("at_once", &self.at_once)
            .field("per_topic", &self.per_topic)
            .field("send_timeout", &self.send_timeout)
            .field("backoff", &self.backoff)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}

/// What a relay has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayStats {
    /// Messages that were sent, and marked so.
    pub sent: u64,
    /// Messages that were not sent, or not in time, and will be tried again.
    pub failed: u64,
    /// Messages that took so long that another relay has taken them over.
    pub overtaken: u64,
}

impl RelayStats {
    pub(super) fn all(self) -> u64 {
        self.sent + self.failed + self.overtaken
    }

    pub(super) fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.failed += other.failed;
        self.overtaken += other.overtaken;
    }
}
