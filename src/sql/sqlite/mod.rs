//! SQLite.
//!
//! `mod` is what differs from the other databases; the statements are in `claims`, `endings`, `admin`, `outbox` and
//! `message_log`, one file each. There is one writer at a time. So writers of this process wait for a permit and not for the file's lock,
//! and a transaction begins with `BEGIN IMMEDIATE`: a read that is upgraded later would fail instead of waiting.

use std::{fs::OpenOptions, path::Path, time::Duration};

use sqlx::{
    Sqlite,
    error::DatabaseError,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous},
};

use crate::value::{StoreError, StoreErrorKind};

use super::{
    SqlStore, SqlStoreBuilder,
    driver::{Driver, ErrorClass, PurgeLock, same_for},
    message_log::{MessageLogTexts, message_log_texts},
    outbox::{OutboxTexts, outbox_texts},
    schema::Missing,
    statement::{Dialect, Texts, texts},
    table::Table,
};

/// Keeps records in an SQLite file: durable, for one host, with no server.
///
/// ```
/// use tower_idempotency::{IdempotencyLayer, SqliteStore};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("idempotency-doc-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # let path = folder.join("records.db");
/// let store = SqliteStore::open(&path).await?;
/// store.migrate().await?;
/// let layer = IdempotencyLayer::new(store);
/// # drop(layer);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// ```
///
/// Several processes of one host may share the file; SQLite does not work on a network file system. The clock is the
/// host's, and so the same for all of them.
///
/// # One writer
///
/// SQLite has one writer at a time. Writers of one process take turns. If another process keeps the file locked past
/// the [busy timeout](SqlStoreBuilder::busy_timeout), a call fails with
/// [`Unavailable`](crate::store::StoreErrorKind::Unavailable), which layers answer with 503. A replay only reads, and
/// waits for no writer.
///
/// # Who may read the file
///
/// A file that the store creates can be read and written by its owner only (mode 600), and so can the files that SQLite
/// creates next to it. An existing file keeps its mode.
///
/// # Durability
///
/// A file that the store opens itself has a write-ahead log, and a call returns once its change is on the disk
/// (`synchronous = FULL`). With a [pool of the application's](SqlStore::new) the application chooses both: a pool
/// should have `journal_mode = WAL`, and with `synchronous = NORMAL` the last records are lost if the power fails.
pub type SqliteStore = SqlStore<Sqlite>;

impl SqlStore<Sqlite> {
    /// Opens a file, or creates it if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened or created, or if the path is that of a database in memory.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::builder().open(path).await
    }

    /// Opens the file of a URL, such as `sqlite://records.db`, or creates it if there is none; see
    /// [`SqlStoreBuilder::connect`].
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not one of SQLite, if the file cannot be opened or created, or if the URL is that
    /// of a database in memory.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }
}

impl SqlStoreBuilder<Sqlite> {
    /// Sets how long a call waits for a file that another process keeps locked. Default: two seconds.
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Opens a file, or creates it if there is none.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be opened or created, or if the path is that of a database in memory.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        let options = Sqlite::configure(SqliteConnectOptions::new().filename(path), "", self.busy_timeout)?;
        self.open_with(options).await
    }
}

/// Refuses a database in memory, in which each connection would have records of its own.
fn check_place(place: &str) -> Result<(), StoreError> {
    if place.contains(":memory:") || place.contains("mode=memory") || place.contains("sqlx-in-memory") {
        let message = "SQLite: records are kept in a file; for memory there is `MemoryStore`";
        return Err(StoreError::new(StoreErrorKind::Misconfigured, message).without_effect());
    }
    Ok(())
}

/// Creates a file that only its owner can read, if there is none. SQLite gives the files next to it the same mode, and
/// reports the error if this fails.
fn create_private(path: &Path) {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let _ = options.open(path);
}

impl Driver for Sqlite {
    const SCHEMES: &'static [&'static str] = &["sqlite"];
    const DIALECT: Dialect = Dialect {
        now: "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)",
        quote: '"',
        placeholder: |number| format!("${number}"),
        enter: str::to_owned,
    };
    const TEXTS: Texts = texts!();
    const OUTBOX: OutboxTexts = outbox_texts!();
    const MESSAGE_LOG: MessageLogTexts = message_log_texts!();
    const CLAIMS_IN_ONE: bool = false;
    const ONE_WRITER: bool = true;
    const LOCKS_BY_NUMBER: bool = false;
    const RESET: Option<&'static str> = None;

    // `SQLITE_MAX_LENGTH`, less the other columns.
    const MOST_BYTES: u64 = 999_000_000;
    const PACKET_LIMIT: Option<&'static str> = None;

    fn check(options: &SqliteConnectOptions) -> Result<(), StoreError> {
        check_place(&options.get_filename().to_string_lossy())
    }

    fn configure(
        options: SqliteConnectOptions,
        url: &str,
        busy_timeout: Duration,
    ) -> Result<SqliteConnectOptions, StoreError> {
        Self::check(&options)?;
        check_place(url)?;
        create_private(options.get_filename());
        Ok(options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(busy_timeout))
    }

    fn begin_text(_: Duration) -> String {
        "BEGIN IMMEDIATE".into()
    }

    fn catalogue(table: &Table) -> String {
        let arguments = format!("'{}', '{}'", table.name(), table.schema().unwrap_or("main"));
        format!(
            "SELECT 'column', name FROM pragma_table_info({arguments}) \
             UNION ALL SELECT 'index', name FROM pragma_index_list({arguments})"
        )
    }

    fn change_text(table: &str, missing: &Missing, _: bool) -> String {
        match missing {
            Missing::Table(text) => text.clone(),
            Missing::Columns(columns) => {
                let add = |column| format!("ALTER TABLE {table} ADD COLUMN {column};");
                columns.iter().map(add).collect::<Vec<_>>().join(" ")
            }
            Missing::Index { name, over } => format!("CREATE INDEX IF NOT EXISTS \"{name}\" ON {table} {over}"),
        }
    }

    fn purge_lock(_: i64) -> Option<PurgeLock> {
        None
    }

    fn refusal(error: &dyn DatabaseError) -> ErrorClass {
        use StoreErrorKind::{Corrupt, Full, Misconfigured, Other, TooLarge, Unavailable};

        let code: i32 = error.code().and_then(|code| code.parse().ok()).unwrap_or(0);
        let (kind, message) = match (code, code & 0xff) {
            // A recovery, a snapshot that is too old, a table lock of a shared cache: waiting does not help with them,
            // and the next try does not meet them.
            (261 | 517 | 262, _) | (_, 6) => return ErrorClass::Conflict,
            (_, 5) => (Unavailable, "another writer keeps the file locked (busy timeout)"),
            (_, 7) => (Unavailable, "out of memory"),
            (_, 8) => (Misconfigured, "the file is read-only"),
            (_, 10) => (Unavailable, "the file cannot be read or written"),
            (_, 11 | 26) => (Corrupt, "the file is damaged, or no database"),
            (_, 18) => (TooLarge, "the record is longer than SQLite takes: lower the layer's `response_limit`"),
            (_, 13) => (Full, "the disk is full"),
            (_, 14) => (Misconfigured, "the file cannot be opened"),
            (_, 1) => (Misconfigured, "the table is missing or another than that of `schema()`"),
            _ => (Other, "failed"),
        };
        ErrorClass::Rejected(kind, message)
    }

    same_for!(Sqlite);
}
