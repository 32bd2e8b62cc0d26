//! On PostgreSQL.

use std::sync::Arc;

use sqlx::{
    Pool, Postgres,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::{
    lab::{Lab, same_for_lab},
    server::Server,
    shared::{Database, Shared},
    staging, what_holds_everywhere,
};

impl Lab for Postgres {
    type Place = Database;

    const MODULE: &'static str = "postgres";
    const BIG: &'static str = "BIGINT";

    async fn place() -> Arc<Database> {
        static SERVER: Shared = Shared::new();

        let place = SERVER.database(async || Server::postgres()).await;
        let admin = Postgres::open(&format!("postgres://tests:secret@127.0.0.1:{}/postgres", place.port())).await;
        let create = format!("CREATE DATABASE {}", place.name);
        Postgres::say(&mut admin.acquire().await.unwrap(), &create).await.unwrap();
        Arc::new(place)
    }

    fn address(place: &Database) -> String {
        format!("postgres://tests:secret@127.0.0.1:{}/{}", place.port(), place.name)
    }

    async fn open(address: &str) -> Pool<Postgres> {
        let options: PgConnectOptions = address.parse().unwrap();
        PgPoolOptions::new().max_connections(8).connect_with(options).await.unwrap()
    }

    same_for_lab!();
}

what_holds_everywhere!(Postgres);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_late_is_not_skipped() {
    staging::what_is_committed_late_is_not_skipped::<Postgres>().await;
}
