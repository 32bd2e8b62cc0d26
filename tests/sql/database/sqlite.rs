use std::{sync::Arc, time::Duration};

use sqlx::{
    Pool, Sqlite,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};
use tower_idempotency::{SqliteStore, sql::SqlStoreBuilder};

use super::{TestDatabase, same_for_each_database};
use crate::folder::Folder;

impl TestDatabase for Sqlite {
    type Place = Folder;

    const MODULE: &'static str = "sqlite";
    const MIGRATIONS: &'static str = "sqlite";
    const BIG: &'static str = "INTEGER";
    const CATALOGUE: &'static str =
        "SELECT COALESCE(sql, name) FROM sqlite_master WHERE name <> 'sqlite_sequence' ORDER BY name";
    const DROP_INDEX: &'static str = "DROP INDEX idempotency_records_due";

    async fn place() -> Arc<Folder> {
        Arc::new(Folder::quick())
    }

    fn url(place: &Folder) -> String {
        place.path().join("shop.db").display().to_string()
    }

    async fn connect(url: &str, connections: u32) -> Pool<Sqlite> {
        connect_with(url, connections, Duration::from_millis(500)).await
    }

    async fn connect_patiently(url: &str, connections: u32) -> Pool<Sqlite> {
        connect_with(url, connections, Duration::from_secs(60)).await
    }

    async fn build(builder: SqlStoreBuilder<Sqlite>, url: &str) -> SqliteStore {
        builder.busy_timeout(Duration::from_secs(20)).open(url).await.unwrap()
    }

    same_for_each_database!();
}

async fn connect_with(url: &str, connections: u32, busy_timeout: Duration) -> Pool<Sqlite> {
    let options = SqliteConnectOptions::new()
        .filename(url)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .busy_timeout(busy_timeout);
    SqlitePoolOptions::new().max_connections(connections).connect_with(options).await.unwrap()
}
