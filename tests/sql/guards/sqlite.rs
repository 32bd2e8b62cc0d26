//! Guards on a file of SQLite.

use std::sync::Arc;

use sqlx::{Sqlite, SqlitePool};
use tower_idempotency::sql::guard::StateMachine;

use super::model::schema;
use crate::{database::TestDatabase, folder::Folder};

async fn database() -> (Arc<Folder>, SqlitePool) {
    let place = Sqlite::place().await;
    let pool = Sqlite::connect_patiently(&Sqlite::url(&place), 20).await;
    fresh(&pool).await;
    (place, pool)
}

async fn fresh(pool: &SqlitePool) {
    sqlx::raw_sql(sqlx::AssertSqlSafe(schema("TEXT", "\""))).execute(pool).await.unwrap();
}

rules!(Sqlite, begin: "BEGIN IMMEDIATE", database: database, fresh: fresh);

/// A transaction that has read before it writes is refused by SQLite where another has written since.
#[tokio::test]
async fn an_old_snapshot_is_an_error() {
    let (_folder, pool) = database().await;
    let mut tx = pool.begin().await.unwrap();
    sqlx::query("SELECT state FROM orders").fetch_all(&mut *tx).await.unwrap();
    let mut other = pool.acquire().await.unwrap();
    assert_eq!(ORDERS.on(&mut *other).transition("A-1", Order::Paid).await.unwrap(), Transition::Moved);
    let error = ORDERS.on(&mut *tx).transition("A-1", Order::Paid).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "517", "{error}");
}

const TWICE: StateMachine<Order> = StateMachine::new("main.twice", "number", "state");

#[tokio::test]
async fn what_the_table_gets_wrong_is_an_error() {
    let (_folder, pool) = database().await;
    sqlx::raw_sql("UPDATE orders SET state = 'odd' WHERE number = 'A-1'").execute(&pool).await.unwrap();
    let mut connection = pool.acquire().await.unwrap();
    let error = ORDERS.on(&mut *connection).transition("A-1", Order::Paid).await.unwrap_err();
    assert!(error.to_string().contains("orders.state has the word `odd`"), "{error}");

    let text = "CREATE TABLE twice (number TEXT, state TEXT); \
                INSERT INTO twice VALUES ('A-1', 'unpaid'), ('A-1', 'unpaid')";
    sqlx::raw_sql(text).execute(&pool).await.unwrap();
    let error = TWICE.on(&mut *connection).transition("A-1", Order::Paid).await.unwrap_err();
    assert!(error.to_string().contains("several rows of main.twice"), "{error}");
}
