//! The databases that the tests run on.

#[cfg(feature = "mysql")]
mod mariadb;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod shared;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::sync::Arc;

use sqlx::Pool;
use tower_idempotency::sql::{SqlDatabase, SqlStatement, SqlStore, SqlStoreBuilder};

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use self::shared::Database;

pub(crate) trait TestDatabase: SqlDatabase {
    /// What has to stay for as long as the database is needed.
    type Place: Send + Sync + 'static;

    /// The module of its own tests, in each group of tests.
    const MODULE: &'static str;

    /// The folder of its migrations.
    const MIGRATIONS: &'static str;

    /// What an integer of 64 bits is cast to.
    const BIG: &'static str;

    /// Describes all that is in a database, line by line.
    const CATALOGUE: &'static str;

    /// Removes the index of what has expired.
    const DROP_INDEX: &'static str;

    /// A database of its own, on a server that all who ask at the same time share.
    async fn place() -> Arc<Self::Place>;

    fn url(place: &Self::Place) -> String;

    async fn connect(url: &str, connections: u32) -> Pool<Self>;

    /// Connections that wait for a lock for as long as a busy machine needs.
    async fn connect_patiently(url: &str, connections: u32) -> Pool<Self> {
        Self::connect(url, connections).await
    }

    /// Connections of another process.
    async fn pool(place: &Self::Place, connections: u32) -> Pool<Self> {
        Self::connect(&Self::url(place), connections).await
    }

    async fn build(builder: SqlStoreBuilder<Self>, url: &str) -> SqlStore<Self>;

    fn say(connection: &mut Self::Connection, text: &str) -> impl Future<Output = sqlx::Result<()>> + Send;

    fn tell(connection: &mut Self::Connection, text: &str) -> impl Future<Output = sqlx::Result<i64>> + Send;

    /// Reads a column of text.
    async fn lines(pool: &Pool<Self>, text: &str) -> Vec<String>;

    async fn pairs(connection: &mut Self::Connection, text: &str) -> Vec<(String, String)>;

    /// Executes a statement of the store's, as a driver of the application's own does. Returns how many rows it has changed.
    fn execute(
        connection: &mut Self::Connection,
        statement: &SqlStatement,
    ) -> impl Future<Output = sqlx::Result<u64>> + Send;

    /// Leaves a savepoint open.
    fn open_savepoint(connection: &mut Self::Connection) -> impl Future<Output = ()> + Send;
}

/// What is the same for each database and cannot be said without naming it.
macro_rules! same_for_each_database {
    () => {
        async fn say(connection: &mut Self::Connection, text: &str) -> sqlx::Result<()> {
            sqlx::raw_sql(sqlx::AssertSqlSafe(text.to_owned())).execute(connection).await.map(drop)
        }

        async fn tell(connection: &mut Self::Connection, text: &str) -> sqlx::Result<i64> {
            sqlx::query_scalar(sqlx::AssertSqlSafe(text.to_owned())).fetch_one(connection).await
        }

        async fn lines(pool: &sqlx::Pool<Self>, text: &str) -> Vec<String> {
            sqlx::query_scalar(sqlx::AssertSqlSafe(text.to_owned())).fetch_all(pool).await.unwrap()
        }

        async fn pairs(connection: &mut Self::Connection, text: &str) -> Vec<(String, String)> {
            sqlx::query_as(sqlx::AssertSqlSafe(text.to_owned())).fetch_all(connection).await.unwrap()
        }

        async fn execute(
            connection: &mut Self::Connection,
            statement: &tower_idempotency::sql::SqlStatement,
        ) -> sqlx::Result<u64> {
            use tower_idempotency::sql::SqlValue;

            let mut query = sqlx::query(sqlx::AssertSqlSafe(statement.text.clone()));
            for value in statement.values.clone() {
                query = match value {
                    SqlValue::Int(number) => query.bind(number),
                    SqlValue::Bool(flag) => query.bind(flag),
                    SqlValue::Text(text) => query.bind(text),
                    SqlValue::Bytes(bytes) => query.bind(bytes),
                    other => panic!("{other:?}"),
                };
            }
            query.execute(connection).await.map(|done| done.rows_affected())
        }

        async fn open_savepoint(connection: &mut Self::Connection) {
            std::mem::forget(sqlx::Connection::begin(connection).await.unwrap());
        }
    };
}
use same_for_each_database;
