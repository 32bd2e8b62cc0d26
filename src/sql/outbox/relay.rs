use std::{fmt, sync::Arc, time::Duration};

use sqlx::Database;

use super::{Outbox, Sender};
use crate::sql::SqlDatabase;

/// The length of a lease as a multiple of the send timeout: one until the message's turn, one to send it, one to mark
/// it.
const LEASE: u32 = 3;

/// Sends what is staged in an [`Outbox`].
///
/// ```
/// use std::{sync::{Arc, Mutex}, time::Duration};
/// use tower_idempotency::{SqliteStore, sql::outbox::{Message, Relay, StagedMessage}};
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
/// - Every committed message is sent at least once. It is sent again if it is unknown whether it was sent: after a
///   crash or a timeout, if the relay was dropped, or if it could not be marked in the database.
/// - The messages of a key are sent in [their order](Outbox#order): the next one once the previous one is marked.
/// - A message that fails waits, and so do those behind it of the same key; other keys go on. There is no last try:
///   find messages that can never be sent with [`Outbox::unsent`], and remove them with [`Outbox::discard`].
/// - Messages that were never tried go before those that failed; of these, the one that has been due for the longest
///   goes first. One topic takes no more than [a part](Self::concurrency_per_topic) of the relay, and only one message
///   at a time while its messages fail, so that a destination that does not answer holds up no other.
/// - Any number of relays may run. Each relay leases what it sends, by the database's clock, for three times the
///   [`send_timeout`](Self::send_timeout), and others do not send that message or those behind it. A relay that has
///   crashed holds up the messages that it was sending, and their keys, for as long.
///
/// A lease has a limit: if a process is suspended while it sends, for longer than two thirds of a lease, it finishes
/// sending its message when it resumes, although others have sent this message and later ones. A consumer that
/// remembers the ids recognises this.
#[must_use = "a relay does nothing until it runs"]
pub struct Relay<D: Database, S> {
    pub(super) outbox: Outbox<D>,
    pub(super) sender: Arc<S>,
    concurrency: usize,
    per_topic: Option<usize>,
    pub(super) send_timeout: Duration,
    pub(super) backoff: [Duration; 2],
    pub(super) retention: Duration,
}

impl<D: SqlDatabase, S: Sender> Relay<D, S> {
    /// Creates a relay that sends with `sender`.
    pub fn new(outbox: Outbox<D>, sender: S) -> Self {
        Self {
            outbox,
            sender: Arc::new(sender),
            concurrency: 8,
            per_topic: None,
            send_timeout: Duration::from_secs(10),
            backoff: [Duration::from_secs(1), Duration::from_secs(300)],
            retention: Duration::from_secs(24 * 60 * 60),
        }
    }

    /// Sets how many messages are sent at the same time, each of another key or without one. Default: 8.
    pub fn concurrency(mut self, messages: usize) -> Self {
        self.concurrency = messages.max(1);
        self
    }

    /// Sets how many messages of one topic are sent at the same time at most, so that others can be sent while its
    /// destination does not answer. A topic whose last message failed is tried with one message at a time until one is
    /// sent. Default: half of [`concurrency`](Self::concurrency), and at least one.
    pub fn concurrency_per_topic(mut self, messages: usize) -> Self {
        self.per_topic = Some(messages.max(1));
        self
    }

    /// Sets how long a message may take to be sent; a message that takes longer counts as failed, but may have been
    /// sent. Minimum: one millisecond. Default: ten seconds.
    pub fn send_timeout(mut self, timeout: Duration) -> Self {
        self.send_timeout = timeout.max(Duration::from_millis(1));
        self
    }

    /// Sets how long a failed message waits, and with it its key: `first` after the first failure, then twice as long
    /// each time, up to `longest`; a random part of up to a half is subtracted. Default: one second, five minutes.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.backoff = [first, longest];
        self
    }

    /// Sets how long messages stay in the table after they were sent; [`run`](Self::run) removes older ones. Default:
    /// one day.
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }

    pub(super) fn places(&self) -> usize {
        self.concurrency
    }

    pub(super) fn most_of_a_topic(&self) -> usize {
        self.per_topic.unwrap_or(self.concurrency / 2).clamp(1, self.concurrency)
    }

    pub(super) fn lease(&self) -> Duration {
        self.send_timeout.saturating_mul(LEASE)
    }
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
            .field("concurrency", &self.concurrency)
            .field("per_topic", &self.per_topic)
            .field("send_timeout", &self.send_timeout)
            .field("backoff", &self.backoff)
            .field("retention", &self.retention)
            .finish_non_exhaustive()
    }
}
