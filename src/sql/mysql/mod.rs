//! MariaDB. MySQL speaks the same dialect and is not tested.
//!
//! `mod` is what differs from the other databases; the statements are in `claims`, `endings`, `admin`, `outbox` and
//! `message_log`, one file each. A claim reads first and inserts then, in two statements: an `INSERT` that finds the key would wait for
//! the writer of its row. In a transaction of the work the lock wait is zero, so a duplicate is refused at once.

use std::time::Duration;

use sqlx::{
    MySql,
    error::DatabaseError,
    mysql::{MySqlConnectOptions, MySqlDatabaseError},
};

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

/// Keeps records in MariaDB, in a table of InnoDB.
///
/// ```no_run
/// use tower_idempotency::{IdempotencyLayer, MySqlStore};
///
/// # async fn connect() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MySqlStore::connect("mysql://app:secret@db/shop").await?.namespace("shop");
/// store.migrate().await?;
/// let layer = IdempotencyLayer::new(store);
/// # drop(layer);
/// # Ok(())
/// # }
/// ```
///
/// The store is tested with MariaDB 10.11. It has not been run on MySQL; the statements use only what MySQL 8 has too.
///
/// A claim reads first, so that a replay neither writes nor waits for a lock: a replay is one statement, and the claim
/// of a free key two. The second is an `INSERT IGNORE`; if requests race, the primary key lets one of them insert.
///
/// An answer may be as long as `max_allowed_packet` allows, 16 MiB on MariaDB by default. A password of MySQL 8
/// (`caching_sha2_password`) needs an encrypted connection, or the feature `mysql-rsa` of `sqlx`.
pub type MySqlStore = SqlStore<MySql>;

const TOO_LARGE: &str =
    "the record is longer than `max_allowed_packet`: raise it, or lower the layer's `response_limit`";

impl SqlStore<MySql> {
    /// Connects to the database of a URL; see [`SqlStoreBuilder::connect`](super::SqlStoreBuilder::connect).
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not one of this database, or if the database cannot be reached.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::builder().connect(url).await
    }
}

impl Driver for MySql {
    const SCHEMES: &'static [&'static str] = &["mysql", "mariadb"];
    const DIALECT: Dialect = Dialect {
        // `UNIX_TIMESTAMP` would depend on the session's time zone.
        now: "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(3)) DIV 1000)",
        quote: '`',
        placeholder: |_| "?".into(),
        enter: |text| format!("/*M!100108 SET STATEMENT innodb_lock_wait_timeout = 0 FOR */ {text}"),
    };
    const TEXTS: Texts = texts!();
    const OUTBOX: OutboxTexts = outbox_texts!();
    const MESSAGE_LOG: MessageLogTexts = message_log_texts!();
    const CLAIMS_IN_ONE: bool = false;
    const ONE_WRITER: bool = false;
    const LOCKS_BY_NUMBER: bool = false;
    const RESET: Option<&'static str> =
        Some("SET /*M!100300 SESSION idle_transaction_timeout = DEFAULT, */ @idempotency = NULL");

    // The largest possible `max_allowed_packet`, less the rest of the statement.
    const MOST_BYTES: u64 = (1 << 30) - (1 << 20);
    const PACKET_LIMIT: Option<&'static str> = Some("SELECT CAST(@@max_allowed_packet AS SIGNED)");

    fn check(_: &MySqlConnectOptions) -> Result<(), StoreError> {
        Ok(())
    }

    fn configure(options: MySqlConnectOptions, _: &str, _: Duration) -> Result<MySqlConnectOptions, StoreError> {
        Ok(options)
    }

    fn begin_text(idle: Duration) -> String {
        let seconds = idle.as_secs().clamp(1, 31_536_000);
        // MySQL reads MariaDB's variable as a comment, and a statement cannot consist of a comment alone.
        format!("SET /*M!100300 SESSION idle_transaction_timeout = {seconds}, */ @idempotency = 1; BEGIN")
    }

    fn catalogue(table: &Table) -> String {
        let schema = table.schema().map_or_else(|| "DATABASE()".into(), |schema| format!("'{schema}'"));
        let of_table = format!("table_schema = {schema} AND table_name = '{}'", table.name());
        format!(
            "SELECT 'column', CAST(column_name AS CHAR) FROM information_schema.columns WHERE {of_table} \
             UNION ALL SELECT DISTINCT 'index', CAST(index_name AS CHAR) FROM information_schema.statistics \
             WHERE {of_table}"
        )
    }

    fn change_text(table: &str, missing: &Missing, waits: bool) -> String {
        // Other sessions queue behind one that waits for the table. MySQL has no such prefix and waits.
        let seconds = u8::from(waits);
        let bounded = format!("/*M!100108 SET STATEMENT lock_wait_timeout = {seconds} FOR */");
        match missing {
            Missing::Table(text) => text.clone(),
            Missing::Columns(columns) => {
                format!("{bounded} ALTER TABLE {table} ADD COLUMN {}", columns.join(", ADD COLUMN "))
            }
            Missing::Index { name, over } => format!("{bounded} CREATE INDEX `{name}` ON {table} {over}"),
        }
    }

    fn purge_lock(number: i64) -> Option<PurgeLock> {
        // A lock's name is valid for the whole server, a table's name for one database.
        let name = format!("MD5(CONCAT_WS('/', 'tower-idempotency', DATABASE(), {number}))");
        Some(PurgeLock {
            begin: None,
            take: format!("SELECT CAST(COALESCE(GET_LOCK({name}, 0), 0) AS SIGNED)"),
            end: format!("DO RELEASE_LOCK({name})"),
        })
    }

    fn refusal(error: &dyn DatabaseError) -> ErrorClass {
        use StoreErrorKind::{Full, Misconfigured, Other, Timeout, TooLarge, Unavailable};

        let number = error.try_downcast_ref::<MySqlDatabaseError>().map_or(0, MySqlDatabaseError::number);
        let (kind, message) = match number {
            // A deadlock, or a lock that was not granted in time.
            1213 | 1205 => return ErrorClass::Conflict,
            // The server or the session ends, or the network fails; a statement may receive only "interrupted" (1317).
            1053 | 1077 | 1080 | 1152 | 1158..=1161 | 1184 | 1317 | 1927 | 3169 | 4031 => {
                return ErrorClass::Disconnected;
            }
            1290 | 1792 | 1836 => (Unavailable, "this server is a replica and takes no writes"),
            1040 | 1203 | 1226 => (Unavailable, "the server has no room for another connection"),
            1021 | 1114 => (Full, "the disk or the table is full"),
            1969 | 3024 => (Timeout, "the statement was not done in time"),
            1146 => (Misconfigured, "the table is missing: call `migrate()`, or run what `schema()` gives"),
            1142 | 1143 | 1370 => (Misconfigured, "the user lacks a permission"),
            1044 | 1045 | 1698 => (Misconfigured, "the user or the password is refused"),
            1046 | 1049 => (Misconfigured, "there is no such database"),
            1054 | 1064 | 1136 | 1176 | 1364 => (Misconfigured, "the table is another than that of `schema()`"),
            1118 | 1153 | 1301 => (TooLarge, TOO_LARGE),
            _ => (Other, "failed"),
        };
        ErrorClass::Rejected(kind, message)
    }

    same_for!(MySql);
}
