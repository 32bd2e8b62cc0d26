//! Guards on a PostgreSQL server.

use std::sync::Arc;

use sqlx::{PgPool, Postgres};

use super::model::schema;
use crate::database::{Database, TestDatabase};

async fn database() -> (Arc<Database>, PgPool) {
    let place = Postgres::place().await;
    let pool = Postgres::pool(&place, 20).await;
    let states = "CREATE TYPE order_state AS ENUM ('unpaid', 'paid', 'closed', 'refunded')";
    sqlx::raw_sql(states).execute(&pool).await.unwrap();
    fresh(&pool).await;
    (place, pool)
}

async fn fresh(pool: &PgPool) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(schema("order_state", "\""))).execute(pool).await.unwrap();
}

rules!(Postgres, begin: "BEGIN", database: database, fresh: fresh);

/// No answer is taken from an old snapshot: PostgreSQL says that the transaction has to begin anew.
#[tokio::test]
async fn an_old_snapshot_is_an_error() {
    let (_server, pool) = database().await;
    for (order, begin) in
        [("A-1", "BEGIN ISOLATION LEVEL REPEATABLE READ"), ("A-2", "BEGIN ISOLATION LEVEL SERIALIZABLE")]
    {
        let mut tx = pool.begin_with(begin).await.unwrap();
        sqlx::query("SELECT state FROM orders").fetch_all(&mut *tx).await.unwrap();
        let mut other = pool.acquire().await.unwrap();
        assert_eq!(ORDERS.on(&mut *other).transition(order, Order::Paid).await.unwrap(), Transition::Moved);
        // It sees an order that may be closed, or that may not be refunded yet; neither is so.
        let to = if order == "A-1" { Order::Refunded } else { Order::Closed };
        let error = ORDERS.on(&mut *tx).transition(order, to).await.unwrap_err();
        assert_eq!(error.as_database_error().unwrap().code().unwrap(), "40001", "{error}");
    }
}
