//! What tests say to a database by themselves.

use sqlx::{AssertSqlSafe, Pool};
use tower_idempotency::sql::SqlDatabase;

pub(crate) trait Lab: SqlDatabase {
    /// Executes a text of one or several statements, each of which is its own transaction unless the text says otherwise.
    async fn say(pool: &Pool<Self>, text: &str);

    /// Reads a column of text.
    async fn lines(pool: &Pool<Self>, text: &str) -> Vec<String>;
}

macro_rules! lab {
    ($database:ty) => {
        impl Lab for $database {
            async fn say(pool: &Pool<Self>, text: &str) {
                sqlx::raw_sql(AssertSqlSafe(text.to_owned())).execute(pool).await.unwrap();
            }

            async fn lines(pool: &Pool<Self>, text: &str) -> Vec<String> {
                sqlx::query_scalar(AssertSqlSafe(text.to_owned())).fetch_all(pool).await.unwrap()
            }
        }
    };
}

#[cfg(feature = "mysql")]
lab!(sqlx::MySql);
#[cfg(feature = "postgres")]
lab!(sqlx::Postgres);
#[cfg(feature = "sqlite")]
lab!(sqlx::Sqlite);
