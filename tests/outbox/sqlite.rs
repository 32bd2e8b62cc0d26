//! On SQLite.

use std::{sync::Arc, time::Duration};

use sqlx::{
    Pool, Sqlite,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

use crate::{
    folder::Folder,
    lab::{Lab, same_for_lab},
    what_holds_everywhere,
};

impl Lab for Sqlite {
    type Place = Folder;

    const MODULE: &'static str = "sqlite";
    const BIG: &'static str = "INTEGER";

    async fn place() -> Arc<Folder> {
        Arc::new(Folder::quick())
    }

    fn address(place: &Folder) -> String {
        place.path().join("shop.db").display().to_string()
    }

    async fn open(address: &str) -> Pool<Sqlite> {
        let options = SqliteConnectOptions::new()
            .filename(address)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(Duration::from_secs(20));
        SqlitePoolOptions::new().max_connections(8).connect_with(options).await.unwrap()
    }

    same_for_lab!();
}

what_holds_everywhere!(Sqlite);
