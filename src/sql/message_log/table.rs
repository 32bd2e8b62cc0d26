use std::{
    fmt,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use sqlx::{Database, Pool};

use crate::{
    sql::{SqlStore, driver::SqlDatabase, table::Table},
    value::{StoreError, nonzero},
};

use super::statements::MessageLogStatements;

/// The default of `retention`.
const RETENTION: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// The default of `body_limit`, in bytes.
const BODY_LIMIT: usize = 64 * 1024;
/// The default of `purge_every`.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// A table of the messages that came in, whatever became of them.
///
/// A [`MessageLogLayer`](crate::MessageLogLayer) writes each request before anything else is done with it, in a
/// statement of its own that is committed by itself: what a handler does in its transaction may be rolled back, and the
/// message stays. Those who audit or reconcile read it by key, time and route.
///
/// ```
/// # #[cfg(feature = "sqlite")] {
/// use tower_idempotency::{SqliteStore, sql::message_log::{IncomingMessage, MessageFilter}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("message-log-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("records.db");
/// let store = SqliteStore::open(&path).await?;
/// let log = store.message_log();
/// log.migrate().await?;
///
/// let message = IncomingMessage::new("payments", "7 EUR").key("order-7");
/// log.write(&message).await?;
/// log.answered(&message.id, 200).await?;
///
/// let found = log.list(&MessageFilter::new().key("order-7"), 10).await?;
/// assert_eq!((found.len(), &found[0].message.body[..], found[0].status), (1, &b"7 EUR"[..], Some(200)));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
///
/// # The table
///
/// [`migrate`](Self::migrate) creates it; [`schema`](Self::schema) returns its text for applications that manage their
/// own migrations. Its columns may be read: `headers` has a header on each line, and `status` is `NULL` for a message
/// that was not answered. The key is kept as its SHA-256. On PostgreSQL:
///
/// ```sql
/// SELECT arrived_ms, status, convert_from(body, 'UTF8') FROM idempotency_message_log
/// WHERE key_digest = sha256('order-7') ORDER BY arrived_ms;
/// ```
///
/// # What it keeps, and for how long
///
/// Bodies are kept as they came, up to [`body_limit`](Self::body_limit), unencrypted: anyone who reads the database or
/// a backup of it reads what clients sent. A message is removed once it is older than the
/// [`retention`](Self::retention), whatever became of its record.
///
/// # Cancellation
///
/// If the future of a method that writes is dropped, its statement may or may not have taken effect.
pub struct MessageLog<D: Database> {
    pub(super) store: SqlStore<D>,
    pub(super) table: Table,
    pub(super) statements: Arc<MessageLogStatements>,
    pub(super) retention: Duration,
    pub(super) body_limit: usize,
    /// How often old messages are removed in the background, if at all.
    pub(super) purge_every: Option<Duration>,
    /// Whether that has begun. It ends with the last clone.
    pub(super) purging: Arc<AtomicBool>,
}

impl<D: SqlDatabase> MessageLog<D> {
    /// Creates a log in the table `idempotency_message_log`, on a pool of the application's. See also
    /// [`SqlStore::message_log`].
    ///
    /// Nothing is sent to the database yet.
    pub fn new(pool: Pool<D>) -> Self {
        SqlStore::builder().without_purge().pool(pool).message_log()
    }

    /// Sets another table: `name` or `schema.name`, of letters, digits and underscores.
    ///
    /// # Errors
    ///
    /// Returns an error if the name is invalid.
    pub fn table(self, name: &str) -> Result<Self, StoreError> {
        let table = Table::new(name)?;
        let statements = Arc::new(MessageLogStatements::new(&D::MESSAGE_LOG, &D::DIALECT, &table));
        Ok(Self { table, statements, purging: Arc::default(), ..self })
    }

    /// Sets how long messages are kept. Default: 90 days.
    ///
    /// It should be longer than it takes until somebody asks about a payment, and as short as the law on what clients
    /// send demands.
    ///
    /// # Panics
    ///
    /// Panics if `time` is zero.
    #[track_caller]
    #[must_use]
    pub fn retention(self, time: Duration) -> Self {
        Self { retention: nonzero("retention", time), purging: Arc::default(), ..self }
    }

    /// Sets how many bytes of a body are kept. Default: 64 KiB.
    ///
    /// Of a body that is longer, the beginning is kept, and [`is_cut`](super::IncomingMessage::is_cut) says so. A layer
    /// holds that much of each request in memory while it writes it.
    #[must_use]
    pub fn body_limit(self, bytes: usize) -> Self {
        Self { body_limit: bytes, ..self }
    }

    /// Sets how often old messages are removed in the background, a thousand at a time. Default: 60 seconds.
    ///
    /// The task is spawned when the first message is written, and ends with the last clone of the log. A random part of
    /// up to a half is added to each pause.
    #[must_use]
    pub fn purge_every(self, pause: Duration) -> Self {
        Self { purge_every: Some(pause.max(Duration::from_millis(100))), purging: Arc::default(), ..self }
    }

    /// Switches the removal of old messages in the background off: the application calls [`purge`](Self::purge) by
    /// itself.
    #[must_use]
    pub fn without_purge(self) -> Self {
        Self { purge_every: None, ..self }
    }

    /// Returns the statements that create the table and its indexes if they do not exist, for applications that manage
    /// their own migrations. The same text, for the default table, is in the folder `migrations` of this package.
    pub fn schema(&self) -> String {
        self.statements.schema.clone()
    }

    /// Creates the table and its indexes if they do not exist. Several processes may call it at once.
    ///
    /// # Errors
    ///
    /// Returns an error if the database returns one or cannot be reached, or if it may not create a table.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        self.store.bring_up(&self.table, &self.statements.schema).await
    }
}

impl<D: SqlDatabase> SqlStore<D> {
    /// Returns a log of the messages that come in, on the pool of this store, in the table `idempotency_message_log`.
    ///
    /// All namespaces share it.
    pub fn message_log(&self) -> MessageLog<D> {
        let table = Table::named("idempotency_message_log");
        MessageLog {
            store: self.clone(),
            statements: Arc::new(MessageLogStatements::new(&D::MESSAGE_LOG, &D::DIALECT, &table)),
            table,
            retention: RETENTION,
            body_limit: BODY_LIMIT,
            purge_every: Some(PURGE_EVERY),
            purging: Arc::default(),
        }
    }
}

impl<D: Database> Clone for MessageLog<D> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            table: self.table.clone(),
            statements: Arc::clone(&self.statements),
            purging: Arc::clone(&self.purging),
            ..*self
        }
    }
}

impl<D: Database> fmt::Debug for MessageLog<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageLog")
            .field("database", &D::NAME)
            .field("table", &format_args!("{}", self.table))
            .field("retention", &self.retention)
            .field("body_limit", &self.body_limit)
            .finish_non_exhaustive()
    }
}
