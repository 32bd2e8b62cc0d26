//! PostgreSQL.
//!
//! `mod` is what differs from the other databases; the statements are in `claims`, `endings`, `admin`, `outbox` and
//! `message_log`, one file each. A claim is one statement, `INSERT … ON CONFLICT`, which also reads the record that exists. In a
//! transaction of the work an advisory lock is tried first: an `INSERT` would wait for the transaction that has
//! inserted the same key.

use std::time::Duration;

use sqlx::{Postgres, error::DatabaseError, postgres::PgConnectOptions};

use crate::value::{StoreError, StoreErrorKind};

use super::{
    SqlStore,
    driver::{Driver, ErrorClass, PurgeLock, same_for},
    message_log::{MessageLogTexts, message_log_texts},
    outbox::{OutboxTexts, outbox_texts},
    schema::Missing,
    statement::{Dialect, Texts, texts},
    table::Table,
};

/// Keeps records in PostgreSQL.
///
/// ```no_run
/// use tower_idempotency::{IdempotencyLayer, PostgresStore};
///
/// # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
/// let store = PostgresStore::connect("postgres://app:secret@db/shop").await?.namespace("shop");
/// store.migrate().await?;
/// let layer = IdempotencyLayer::new(store);
/// # drop(layer);
/// # Ok(())
/// # }
/// ```
///
/// A claim is one statement: it inserts the record if there is none, and otherwise reads the existing one and writes
/// nothing. A claim of a key that this process has seen recently only reads, which takes half as long. A second
/// statement is needed if the record has lapsed, has expired or was released; it may also be needed in a race, or if a
/// key that was seen recently is gone.
///
/// A replica accepts no claims; connect the store to the primary. A failover to a replica that lags loses the records
/// of the last moments, unless replication is synchronous.
pub type PostgresStore = SqlStore<Postgres>;

impl SqlStore<Postgres> {
    /// Connects to the database of a URL; see [`SqlStoreBuilder::connect`](super::SqlStoreBuilder::connect).
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not one of this database, or if the database cannot be reached.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }
}

impl Driver for Postgres {
    const SCHEMES: &'static [&'static str] = &["postgres", "postgresql"];
    const DIALECT: Dialect = Dialect {
        // `now()` would be the start of the transaction. Because of the parentheses the clock is read once, not for
        // each row.
        now: "(SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)",
        quote: '"',
        placeholder: |number| format!("${number}"),
        enter: |text| {
            let last = (1..32).take_while(|number| text.contains(&format!("${number}"))).count();
            format!("{} AND (SELECT pg_try_advisory_xact_lock(${}))", text.trim_end(), last + 1)
        },
    };
    const TEXTS: Texts = Texts { open: Some(include_str!("claims/open.sql")), ..texts!() };
    const OUTBOX: OutboxTexts = outbox_texts!();
    const MESSAGE_LOG: MessageLogTexts = message_log_texts!();
    const CLAIMS_IN_ONE: bool = true;
    const ONE_WRITER: bool = false;
    const LOCKS_BY_NUMBER: bool = true;
    const RESET: Option<&'static str> = None;
    // The longest message that the server reads, less the rest of the statement.
    const MOST_BYTES: u64 = (1 << 30) - (1 << 20);
    const PACKET_LIMIT: Option<&'static str> = None;

    fn check(_: &PgConnectOptions) -> Result<(), StoreError> {
        Ok(())
    }

    fn configure(options: PgConnectOptions, _: &str, _: Duration) -> Result<PgConnectOptions, StoreError> {
        Ok(options)
    }

    fn begin_text(idle: Duration) -> String {
        // The first setting notices during a query that this process is gone, the second while no query runs.
        format!(
            "BEGIN; SET LOCAL client_connection_check_interval = 500; \
             SET LOCAL idle_in_transaction_session_timeout = {}",
            idle.as_millis().clamp(1, i32::MAX as u128)
        )
    }

    fn catalogue(table: &Table) -> String {
        let name = format!("to_regclass('{}')", table.quoted('"'));
        format!(
            "SELECT 'column'::text, attname::text FROM pg_attribute \
             WHERE attrelid = {name} AND attnum > 0 AND NOT attisdropped \
             UNION ALL SELECT 'index'::text, relname::text FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid \
             WHERE indrelid = {name}"
        )
    }

    fn change_text(table: &str, missing: &Missing, waits: bool) -> String {
        match missing {
            Missing::Table(text) => text.clone(),
            // Sessions that queue behind this lock wait no longer than this; the next try comes later.
            Missing::Columns(columns) => {
                let columns: Vec<_> =
                    columns.iter().map(|column| format!("ADD COLUMN IF NOT EXISTS {column}")).collect();
                let columns = columns.join(", ");
                let timeout = if waits { 1000 } else { 20 };
                format!("BEGIN; SET LOCAL lock_timeout = {timeout}; ALTER TABLE {table} {columns}; COMMIT")
            }
            // It waits for writers, but writers do not wait for it.
            Missing::Index { name, over } => {
                format!("CREATE INDEX CONCURRENTLY IF NOT EXISTS \"{name}\" ON {table} {over}")
            }
        }
    }

    fn purge_lock(number: i64) -> Option<PurgeLock> {
        // A transaction's lock ends with the transaction, even behind a proxy that shares sessions.
        Some(PurgeLock {
            begin: Some("BEGIN"),
            take: format!("SELECT pg_try_advisory_xact_lock({number})::int::bigint"),
            end: "COMMIT".into(),
        })
    }

    fn refusal(error: &dyn DatabaseError) -> ErrorClass {
        use StoreErrorKind::{Full, Misconfigured, Other, Timeout, TooLarge, Unavailable};

        let code = error.code().unwrap_or_default();
        let (kind, message) = match &*code {
            "40001" | "40P01" => return ErrorClass::Conflict,
            // Ended by an operator, by a crash of another session, or for being idle.
            "57P01" | "57P02" | "57P05" | "25P03" => return ErrorClass::Disconnected,
            "25006" => (Unavailable, "this server is a replica and takes no writes"),
            "57P03" => (Unavailable, "the server is starting or stopping"),
            "53100" => (Full, "the disk is full"),
            "54000" => (TooLarge, "the record is longer than the database takes: lower the layer's `response_limit`"),
            "55P03" => (Unavailable, "a lock was not to be had in time"),
            "57014" => (Timeout, "the statement was not done in time"),
            "42P01" => (Misconfigured, "the table is missing: call `migrate()`, or run what `schema()` gives"),
            "42501" => (Misconfigured, "the user lacks a permission"),
            "3D000" => (Misconfigured, "there is no such database"),
            code => match code.get(..2) {
                Some("08") => return ErrorClass::Disconnected,
                Some("53") => (Unavailable, "the server has no room for another connection, or no memory"),
                Some("28") => (Misconfigured, "the user or the password is refused"),
                Some("42") => (Misconfigured, "the table is another than that of `schema()`"),
                _ => (Other, "failed"),
            },
        };
        ErrorClass::Rejected(kind, message)
    }

    same_for!(Postgres);
}
