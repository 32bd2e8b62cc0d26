//! What differs between the databases, as one trait; it is sealed, since its methods may change with every version.
//!
//! Constants are the differences that decide which statement is sent; methods are those that need code. What is the
//! same for all and only has to name the database is in `same_for`.

use std::{future::Future, time::Duration};

use sqlx::{Connection, Database, error::DatabaseError};

use crate::value::{StoreError, StoreErrorKind};

use super::{
    message_log::MessageLogTexts,
    outbox::OutboxTexts,
    schema::Missing,
    statement::{Dialect, Statement, Texts},
    table::Table,
};

/// A value that is bound to a statement.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A number, such as a time in milliseconds.
    Int(i64),
    /// A truth value.
    Flag(bool),
    /// Text, or none.
    Text(Option<&'a str>),
    /// Bytes, or none.
    Bytes(Option<&'a [u8]>),
}

/// The result of a statement.
#[derive(Debug)]
pub struct StatementResult<R> {
    /// The rows, if the statement reads.
    pub(crate) rows: Vec<R>,
    /// How many rows were changed, if the statement writes.
    pub(crate) count: u64,
}

/// The meaning of an error of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The statement lost against another and was undone: it may be sent again.
    Conflict,
    /// The server ends this connection. It is unknown whether the statement took effect.
    Disconnected,
    /// The statement was not done, for this reason.
    Rejected(StoreErrorKind, &'static str),
}

/// How a process takes its turn at purging a table, so that one of many purges at a time.
#[derive(Debug)]
pub struct PurgeLock {
    /// The statement that begins it.
    pub(in crate::sql) begin: Option<&'static str>,
    /// The query that returns 1 if it is this process's turn.
    pub(in crate::sql) take: String,
    /// The statement that ends it.
    pub(in crate::sql) end: String,
}

type Options<D> = <<D as Database>::Connection as Connection>::Options;

/// What differs between the databases.
pub trait Driver: Database {
    /// The schemes of its URLs.
    const SCHEMES: &'static [&'static str];
    /// Its SQL dialect.
    const DIALECT: Dialect;
    /// The texts of its statements.
    const TEXTS: Texts;
    /// The texts of its outbox's statements.
    const OUTBOX: OutboxTexts;
    /// The texts of its message log's statements.
    const MESSAGE_LOG: MessageLogTexts;
    /// Whether its claim is one statement that inserts the record if there is none, and otherwise reads it without
    /// writing. Other databases read first, since a replay must neither write nor wait for writers.
    const CLAIMS_IN_ONE: bool;
    /// Whether it has one writer at a time; writers then wait for their turn in this process.
    const ONE_WRITER: bool;
    /// Whether a claim in a transaction takes a lock by number first; the number is its last value.
    const LOCKS_BY_NUMBER: bool;
    /// The text that resets what `begin_text` has set on a connection.
    const RESET: Option<&'static str>;

    /// The most bytes that a record can have, whatever the database's settings are.
    const MOST_BYTES: u64;
    /// The query for how many bytes a statement may have, if the database has such a limit.
    const PACKET_LIMIT: Option<&'static str>;

    /// Refuses options that no store can work with.
    fn check(options: &Options<Self>) -> Result<(), StoreError>;

    /// Sets the options that the store needs if it connects by itself.
    fn configure(options: Options<Self>, url: &str, busy_timeout: Duration) -> Result<Options<Self>, StoreError>;

    /// Sends a statement, prepared once for each connection.
    fn ask<'a>(
        connection: &'a mut Self::Connection,
        statement: &'a Statement,
        values: &'a [Value<'a>],
    ) -> impl Future<Output = sqlx::Result<StatementResult<Self::Row>>> + Send + 'a;

    /// Executes a text of several statements.
    fn run(connection: &mut Self::Connection, text: String) -> impl Future<Output = sqlx::Result<()>> + Send + '_;

    /// Returns the text that begins a transaction of the work, which may not be idle for longer than `idle` if the
    /// database can enforce that.
    fn begin_text(idle: Duration) -> String;

    /// Returns the query that lists the columns and indexes of a table, by kind and name, without waiting for sessions
    /// that change it.
    fn catalogue(table: &Table) -> String;

    /// Returns the text that changes a table. For a lock that other sessions queue behind it waits for a moment only; if it
    /// `waits`, for up to a second.
    fn change_text(table: &str, missing: &Missing, waits: bool) -> String;

    /// Returns how a process takes its turn at purging, by the number of a lock; `None` if there is one writer at a
    /// time anyway.
    fn purge_lock(number: i64) -> Option<PurgeLock>;

    /// Classifies an error of the database.
    fn refusal(error: &dyn DatabaseError) -> ErrorClass;

    /// Reads a number.
    fn int(row: &Self::Row, at: usize) -> sqlx::Result<Option<i64>>;
    /// Reads a truth value.
    fn flag(row: &Self::Row, at: usize) -> sqlx::Result<Option<bool>>;
    /// Reads text.
    fn text(row: &Self::Row, at: usize) -> sqlx::Result<Option<String>>;
    /// Reads bytes.
    fn bytes(row: &Self::Row, at: usize) -> sqlx::Result<Option<Vec<u8>>>;
}

/// A database that an [`SqlStore`](super::SqlStore) can work on: `sqlx::Postgres`, `sqlx::MySql` or `sqlx::Sqlite`.
///
/// It is a bound for functions that take a store on any of them. It is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a database of the `sqlx` that `tower-idempotency` uses",
    label = "not a database of sqlx 0.9",
    note = "this crate works with sqlx 0.9: write `sqlx = \"0.9\"` in your Cargo.toml, with the features that you need",
    note = "`cargo tree -i sqlx-core` shows the versions that are there; two of them have nothing in common"
)]
pub trait SqlDatabase: Driver {}

#[cfg(feature = "mysql")]
impl SqlDatabase for sqlx::MySql {}
#[cfg(feature = "postgres")]
impl SqlDatabase for sqlx::Postgres {}
#[cfg(feature = "sqlite")]
impl SqlDatabase for sqlx::Sqlite {}

/// Implements what is the same for each database but has to name the database.
macro_rules! same_for {
    ($database:ty) => {
        fn ask<'a>(
            connection: &'a mut Self::Connection,
            statement: &'a $crate::sql::statement::Statement,
            values: &'a [$crate::sql::driver::Value<'a>],
        ) -> impl Future<Output = sqlx::Result<$crate::sql::driver::StatementResult<Self::Row>>> + Send + 'a {
            use sqlx::Arguments as _;
            use $crate::sql::driver::{StatementResult, Value};

            async move {
                let mut arguments = <Self as sqlx::Database>::Arguments::default();
                for value in values {
                    match *value {
                        Value::Int(number) => arguments.add(number),
                        Value::Flag(flag) => arguments.add(flag),
                        Value::Text(text) => arguments.add(text),
                        Value::Bytes(bytes) => arguments.add(bytes),
                    }
                    .map_err(sqlx::Error::Encode)?;
                }
                let query = sqlx::query_with::<$database, _>(statement.sql.clone(), arguments);
                Ok(if statement.reads {
                    StatementResult { rows: query.fetch_all(connection).await?, count: 0 }
                } else {
                    StatementResult { rows: Vec::new(), count: query.execute(connection).await?.rows_affected() }
                })
            }
        }

        async fn run(connection: &mut Self::Connection, text: String) -> sqlx::Result<()> {
            sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(connection).await.map(drop)
        }

        fn int(row: &Self::Row, at: usize) -> sqlx::Result<Option<i64>> {
            sqlx::Row::try_get(row, at)
        }

        fn flag(row: &Self::Row, at: usize) -> sqlx::Result<Option<bool>> {
            sqlx::Row::try_get(row, at)
        }

        fn text(row: &Self::Row, at: usize) -> sqlx::Result<Option<String>> {
            sqlx::Row::try_get(row, at)
        }

        fn bytes(row: &Self::Row, at: usize) -> sqlx::Result<Option<Vec<u8>>> {
            sqlx::Row::try_get(row, at)
        }
    };
}
pub(crate) use same_for;
