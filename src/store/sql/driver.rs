use std::{future::Future, time::Duration};

use sqlx::{Connection, Database, error::DatabaseError};

use crate::value::StoreError;

use super::{
    error::Refusal,
    outbox,
    purging::Turn,
    schema::Missing,
    statements::{Dialect, Statement, Texts},
    table::Table,
};

/// A value that is bound to a statement.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// A number, such as a time in milliseconds.
    Int(i64),
    /// Yes or no.
    Flag(bool),
    /// Text, or none.
    Text(Option<&'a str>),
    /// Bytes, or none.
    Bytes(Option<&'a [u8]>),
}

/// What a statement gave.
#[derive(Debug)]
pub struct Answer<R> {
    /// The rows, of one that reads.
    pub(super) rows: Vec<R>,
    /// How many rows it has changed, of one that writes.
    pub(super) count: u64,
}

type Options<D> = <<D as Database>::Connection as Connection>::Options;

/// What differs between the databases.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a database of the `sqlx` that `tower-idempotency` uses",
    label = "not a database of sqlx 0.9",
    note = "this crate works with sqlx 0.9: write `sqlx = \"0.9\"` in your Cargo.toml, with the features that you need",
    note = "`cargo tree -i sqlx-core` shows the versions that are there; two of them have nothing in common"
)]
pub trait Driver: Database {
    /// What its URLs begin with.
    const SCHEMES: &'static [&'static str];
    /// How its texts are written.
    const DIALECT: Dialect;
    /// Its texts.
    const TEXTS: Texts;
    /// Those of its outbox.
    const OUTBOX: outbox::Texts;
    /// Its claim inserts where nothing is and reads what is there, in one statement that writes nothing where something
    /// is. Others read first, for a replay must neither write nor wait for those who do.
    const CLAIMS_IN_ONE: bool;
    /// It has one writer at a time, and those who wait for their turn do so in this process.
    const ONE_WRITER: bool;
    /// A claim in a transaction takes a lock by number first, which is its last value.
    const LOCKS_BY_NUMBER: bool;
    /// What takes back what `begin_text` did to a connection.
    const RESET: Option<&'static str>;

    /// More bytes than these are in no record, whatever the database is told.
    const MOST_BYTES: u64;
    /// Asks how many bytes a statement may have, if the database has such a limit.
    const PACKET_LIMIT: Option<&'static str>;

    /// Refuses options that no store can work with.
    fn check(options: &Options<Self>) -> Result<(), StoreError>;

    /// What the store asks for if it connects by itself.
    fn configure(options: Options<Self>, url: &str, busy_timeout: Duration) -> Result<Options<Self>, StoreError>;

    /// Sends a statement, prepared once for each connection.
    fn ask<'a>(
        connection: &'a mut Self::Connection,
        statement: &'a Statement,
        values: &'a [Value<'a>],
    ) -> impl Future<Output = sqlx::Result<Answer<Self::Row>>> + Send + 'a;

    /// Sends a text of several statements.
    fn run(connection: &mut Self::Connection, text: String) -> impl Future<Output = sqlx::Result<()>> + Send + '_;

    /// What begins a transaction of the work, which may not be idle for longer than `idle` if the database can see
    /// to that.
    fn begin_text(idle: Duration) -> String;

    /// Lists the columns and indexes of a table, by kind and name, without waiting for those who change it.
    fn catalogue(table: &Table) -> String;

    /// Changes a table. It does not wait long for a lock with others behind it.
    fn change_text(table: &str, missing: &Missing) -> String;

    /// How a process takes its turn at purging, by the number of a lock; `None` if there is one writer at a time anyway.
    fn purging_turn(number: i64) -> Option<Turn>;

    /// What the database means by an error of its own.
    fn refusal(error: &dyn DatabaseError) -> Refusal;

    /// Reads a number.
    fn int(row: &Self::Row, at: usize) -> sqlx::Result<Option<i64>>;
    /// Reads yes or no.
    fn flag(row: &Self::Row, at: usize) -> sqlx::Result<Option<bool>>;
    /// Reads text.
    fn text(row: &Self::Row, at: usize) -> sqlx::Result<Option<String>>;
    /// Reads bytes.
    fn bytes(row: &Self::Row, at: usize) -> sqlx::Result<Option<Vec<u8>>>;
}

/// A database that an [`SqlStore`](super::SqlStore) can work on: `sqlx::Postgres`, `sqlx::MySql` or `sqlx::Sqlite`.
///
/// For functions that take a store on any of them. It is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a database of the `sqlx` that `tower-idempotency` uses",
    label = "not a database of sqlx 0.9",
    note = "this crate works with sqlx 0.9: write `sqlx = \"0.9\"` in your Cargo.toml, with the features that you need",
    note = "`cargo tree -i sqlx-core` shows the versions that are there; two of them have nothing in common"
)]
pub trait SqlDatabase: Driver {}

#[diagnostic::do_not_recommend]
impl<D: Driver> SqlDatabase for D {}

/// What is the same for each database and cannot be said without naming it.
macro_rules! same_for {
    ($database:ty) => {
        fn ask<'a>(
            connection: &'a mut Self::Connection,
            statement: &'a $crate::store::sql::statements::Statement,
            values: &'a [$crate::store::sql::driver::Value<'a>],
        ) -> impl Future<Output = sqlx::Result<$crate::store::sql::driver::Answer<Self::Row>>> + Send + 'a {
            use sqlx::Arguments as _;
            use $crate::store::sql::driver::{Answer, Value};

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
                    Answer { rows: query.fetch_all(connection).await?, count: 0 }
                } else {
                    Answer { rows: Vec::new(), count: query.execute(connection).await?.rows_affected() }
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
pub(super) use same_for;
