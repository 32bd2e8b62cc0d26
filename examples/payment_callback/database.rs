//! What is written out for each database: statements of the application's own.

use std::future::Future;

use sqlx::{Pool, Row};
use tower_idempotency::sql::SqlDatabase;

/// An order, as far as a notification is checked against it.
pub(crate) struct Order {
    pub(crate) account: String,
    pub(crate) cents: i64,
}

pub(crate) trait Database: SqlDatabase {
    /// The order of a number.
    fn order(
        connection: &mut Self::Connection,
        number: &str,
    ) -> impl Future<Output = sqlx::Result<Option<Order>>> + Send;

    /// Sends a statement.
    fn send(pool: &Pool<Self>, sql: &str) -> impl Future<Output = sqlx::Result<()>> + Send;

    /// Reads rows of two texts and a number.
    fn rows(pool: &Pool<Self>, sql: &str) -> impl Future<Output = sqlx::Result<Vec<(String, String, i64)>>> + Send;
}

macro_rules! database {
    ($database:ty, $first:literal) => {
        impl Database for $database {
            async fn order(connection: &mut Self::Connection, number: &str) -> sqlx::Result<Option<Order>> {
                let sql = concat!("SELECT account, cents FROM payment_callback_orders WHERE number = ", $first);
                let row = sqlx::query(sql).bind(number).fetch_optional(connection).await?;
                row.map(|row| Ok(Order { account: row.try_get(0)?, cents: row.try_get(1)? })).transpose()
            }

            async fn send(pool: &Pool<Self>, sql: &str) -> sqlx::Result<()> {
                sqlx::query(sqlx::AssertSqlSafe(sql)).execute(pool).await.map(drop)
            }

            async fn rows(pool: &Pool<Self>, sql: &str) -> sqlx::Result<Vec<(String, String, i64)>> {
                let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).fetch_all(pool).await?;
                rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
            }
        }
    };
}

#[cfg(feature = "postgres")]
database!(sqlx::Postgres, "$1");
#[cfg(feature = "mysql")]
database!(sqlx::MySql, "?");
#[cfg(feature = "sqlite")]
database!(sqlx::Sqlite, "?");
