use std::{path::Path, time::Duration};

use sqlx::{
    Sqlite,
    error::DatabaseError,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::value::{StoreError, StoreErrorKind};

use super::{
    SqlStore, SqlStoreBuilder,
    driver::{Driver, same_for},
    error::Refusal,
    outbox::{self, outbox_texts},
    statements::{Dialect, Texts, texts},
};

/// Keeps records in an SQLite file: durable, for one host, with no server.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{IdempotencyLayer, SqliteStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("idempotency-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("records.db");
/// let store = SqliteStore::open(&path).await?;
/// store.migrate().await?;
/// let purging = store.purge_every(Duration::from_secs(60));
/// let layer = IdempotencyLayer::new(store);
/// # drop((layer, purging));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// ```
///
/// Several processes of one host may share the file; a file on a network's share is not for SQLite. The clock is the
/// host's, and so the same for all of them.
///
/// # One writer
///
/// SQLite has one writer at a time. Within a process those who write take turns. Where another process keeps the file
/// locked past the [busy timeout](SqlStoreBuilder::busy_timeout), a verb fails as
/// [`Unavailable`](crate::StoreErrorKind::Unavailable), which layers answer with 503. A replay only reads, and waits for
/// no writer.
///
/// # Durability
///
/// A file that the store opens itself has a write-ahead log, and what was said to be done is on the disk
/// (`synchronous = FULL`). With a [pool of the application's](SqlStore::new) both are the application's to choose: a pool
/// should have `journal_mode = WAL`, and with `synchronous = NORMAL` the last records are lost when the power fails.
pub type SqliteStore = SqlStore<Sqlite>;

impl SqlStore<Sqlite> {
    /// Opens a file, or creates it.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder().open(path).await
    }

    /// Opens the file of a URL, such as `sqlite://records.db`, or creates it; see [`SqlStoreBuilder::connect`].
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }
}

impl SqlStoreBuilder<Sqlite> {
    /// How long a verb waits for a file that another process keeps locked. Default: two seconds.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Opens a file, or creates it.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        let options = Sqlite::configure(SqliteConnectOptions::new().filename(path), "", self.busy_timeout)?;
        self.open_with(options).await
    }
}

impl Driver for Sqlite {
    const SCHEMES: &'static [&'static str] = &["sqlite"];
    const DIALECT: Dialect = Dialect {
        now: "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)",
        quote: '"',
        placeholder: |number| format!("${number}"),
        enter: str::to_owned,
    };
    const TEXTS: Texts = texts!("sqlite");
    const OUTBOX: outbox::Texts = outbox_texts!("sqlite");
    const CLAIMS_IN_ONE: bool = false;
    const ONE_WRITER: bool = true;
    const LOCKS_BY_NUMBER: bool = false;
    const RESET: Option<&'static str> = None;

    fn configure(
        options: SqliteConnectOptions,
        url: &str,
        busy_timeout: Duration,
    ) -> Result<SqliteConnectOptions, StoreError> {
        // Each connection would have records of its own.
        let in_memory = options.get_filename() == Path::new(":memory:");
        if in_memory || url.contains(":memory:") || url.contains("mode=memory") {
            let message = "SQLite: records are kept in a file; for memory there is `MemoryStore`";
            return Err(StoreError::new(StoreErrorKind::Misconfigured, message).without_effect());
        }
        Ok(options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(busy_timeout))
    }

    fn begin_text(_: Duration) -> String {
        "BEGIN IMMEDIATE".into()
    }

    fn refusal(error: &dyn DatabaseError) -> Refusal {
        use StoreErrorKind::{Corrupt, Full, Misconfigured, Other, Unavailable};

        let code: i32 = error.code().and_then(|code| code.parse().ok()).unwrap_or(0);
        let (kind, message) = match (code, code & 0xff) {
            // A recovery, a snapshot that is too old, a table lock of a shared cache: no waiting helps with them, and
            // the next try does not find them.
            (261 | 517 | 262, _) | (_, 6) => return Refusal::Victim,
            (_, 5) => (Unavailable, "another writer keeps the file locked (busy timeout)"),
            (_, 7) => (Unavailable, "out of memory"),
            (_, 8) => (Misconfigured, "the file is read-only"),
            (_, 10) => (Unavailable, "the file cannot be read or written"),
            (_, 11 | 26) => (Corrupt, "the file is damaged, or no database"),
            (_, 13) => (Full, "the disk is full"),
            (_, 14) => (Misconfigured, "the file cannot be opened"),
            (_, 1) => (Misconfigured, "the table is missing or another than that of `schema()`"),
            _ => (Other, "failed"),
        };
        Refusal::Because(kind, message)
    }

    same_for!(Sqlite);
}
