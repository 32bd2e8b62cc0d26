use std::sync::Arc;

use sqlx::{
    PgPool, Pool, Postgres,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tower_idempotency::{PostgresStore, sql::SqlStoreBuilder};

use super::{
    TestDatabase, same_for_each_database,
    shared::{Database, Shared},
};
use crate::server::Server;

impl TestDatabase for Postgres {
    type Place = Database;

    const MODULE: &'static str = "postgres";
    const MIGRATIONS: &'static str = "postgres";
    const BIG: &'static str = "BIGINT";
    const CATALOGUE: &'static str = "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, is_identity) AS line \
         FROM information_schema.columns WHERE table_schema = 'public' \
         UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY line";
    const DROP_INDEX: &'static str = "DROP INDEX idempotency_records_due";

    async fn place() -> Arc<Database> {
        static SERVER: Shared = Shared::new();

        let place = SERVER.database(async || Server::postgres()).await;
        let admin = connect_with(&url(place.port(), "postgres"), 1, &[]).await;
        let create = format!("CREATE DATABASE {}", place.name);
        Postgres::say(&mut *admin.acquire().await.unwrap(), &create).await.unwrap();
        Arc::new(place)
    }

    fn url(place: &Database) -> String {
        url(place.port(), &place.name)
    }

    async fn connect(url: &str, connections: u32) -> Pool<Postgres> {
        connect_with(url, connections, &[]).await
    }

    async fn build(builder: SqlStoreBuilder<Postgres>, url: &str) -> PostgresStore {
        builder.connect(url).await.unwrap()
    }

    same_for_each_database!();
}

fn url(port: u16, database: &str) -> String {
    format!("postgres://tests:secret@127.0.0.1:{port}/{database}")
}

/// Connections whose sessions have these settings.
pub(crate) async fn connect_with(url: &str, connections: u32, settings: &[(&str, &str)]) -> PgPool {
    let options: PgConnectOptions = url.parse().unwrap();
    let options = options.options(settings.iter().copied());
    PgPoolOptions::new().max_connections(connections).connect_with(options).await.unwrap()
}
