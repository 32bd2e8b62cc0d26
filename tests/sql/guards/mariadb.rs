//! Guards on a MariaDB server.

use std::sync::Arc;

use sqlx::{Connection as _, MySql, MySqlConnection, MySqlPool};

use super::model::schema;
use crate::database::{Database, TestDatabase};

async fn database() -> (Arc<Database>, MySqlPool) {
    let place = MySql::place().await;
    let pool = MySql::pool(&place, 20).await;
    fresh(&pool).await;
    (place, pool)
}

async fn fresh(pool: &MySqlPool) {
    let text = schema("ENUM ('unpaid', 'paid', 'closed', 'refunded')", "`");
    sqlx::raw_sql(sqlx::AssertSqlSafe(text)).execute(pool).await.unwrap();
}

rules!(MySql, begin: "START TRANSACTION", database: database, fresh: fresh);

/// MariaDB writes to what is committed now, and so that is what an answer is taken from, whatever the transaction sees.
#[tokio::test]
async fn an_old_snapshot_is_not_asked() {
    let (_server, pool) = database().await;
    let mut tx = pool.begin().await.unwrap();
    sqlx::query("SELECT state FROM orders").fetch_all(&mut *tx).await.unwrap();
    sqlx::query("SELECT cents FROM accounts").fetch_all(&mut *tx).await.unwrap();
    let mut other = pool.acquire().await.unwrap();
    assert_eq!(ORDERS.on(&mut *other).transition("A-1", Order::Paid).await.unwrap(), Transition::Moved);
    let modify = async |connection: &mut MySqlConnection| {
        ACCOUNTS.on(connection).modify(1, CENTS, |cents: i64| Some(cents + 1)).await.unwrap()
    };
    assert_eq!(modify(&mut other).await, Written::Done);
    assert_eq!(PAYMENTS.on(&mut *other).set(CENTS, 1).insert("P-1").await.unwrap(), Inserted::New);

    assert_eq!(ORDERS.on(&mut *tx).transition("A-1", Order::Closed).await.unwrap(), Transition::Refused(Order::Paid));
    assert_eq!(modify(&mut tx).await, Written::Done);
    assert_eq!(PAYMENTS.on(&mut *tx).set(CENTS, 1).insert("P-1").await.unwrap(), Inserted::AlreadyThere);
    tx.commit().await.unwrap();
    assert_eq!(number(&pool, "SELECT cents FROM accounts WHERE id = 1").await, 1002);
}

/// Newer servers can be configured to do as PostgreSQL does; this is what follows.
#[tokio::test]
async fn snapshot_isolation_makes_it_an_error() {
    let (_server, pool) = database().await;
    let mut connection = pool.acquire().await.unwrap();
    sqlx::query("SET SESSION innodb_snapshot_isolation = ON").execute(&mut *connection).await.unwrap();
    let mut tx = connection.begin().await.unwrap();
    sqlx::query("SELECT state FROM orders").fetch_all(&mut *tx).await.unwrap();
    let mut other = pool.acquire().await.unwrap();
    assert_eq!(ORDERS.on(&mut *other).transition("A-1", Order::Paid).await.unwrap(), Transition::Moved);
    let error = ORDERS.on(&mut *tx).transition("A-1", Order::Closed).await.unwrap_err();
    assert!(error.to_string().contains("1020"), "{error}");
}
