//! Databases on a server of the tests' own.

use std::sync::Arc;

use sqlx::AssertSqlSafe;
use tower_idempotency::store::StoreAdmin;

use crate::database_server::Server;

#[cfg(feature = "postgres")]
pub(crate) fn postgres() -> Server {
    Server::postgres()
}

#[cfg(feature = "mysql")]
pub(crate) fn mariadb() -> Server {
    Server::mariadb()
}

#[cfg(feature = "postgres")]
pub(crate) async fn on_postgres(server: &Server, name: &str) -> Arc<dyn StoreAdmin> {
    let url = |database: &str| format!("postgres://tests@127.0.0.1:{}/{database}", server.port());
    // A pool tries again while the server starts up.
    let admin = sqlx::PgPool::connect(&url("postgres")).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(create(name))).execute(&admin).await.unwrap();
    let store = tower_idempotency::PostgresStore::connect(&url(name)).await.unwrap();
    store.migrate().await.unwrap();
    Arc::new(store)
}

#[cfg(feature = "mysql")]
pub(crate) async fn on_mariadb(server: &Server, name: &str) -> Arc<dyn StoreAdmin> {
    let url = |database: &str| format!("mysql://root@127.0.0.1:{}/{database}", server.port());
    let admin = sqlx::MySqlPool::connect(&url("")).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(create(name))).execute(&admin).await.unwrap();
    let store = tower_idempotency::MySqlStore::connect(&url(name)).await.unwrap();
    store.migrate().await.unwrap();
    Arc::new(store)
}

fn create(name: &str) -> String {
    format!("CREATE DATABASE {name}")
}
