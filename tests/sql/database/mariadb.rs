use std::sync::Arc;

use sqlx::{
    Connection, MySql, MySqlConnection, Pool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};
use tower_idempotency::{MySqlStore, sql::SqlStoreBuilder};

use super::{
    TestDatabase, same_for_each_database,
    shared::{Database, Shared},
};
use crate::server::Server;

impl TestDatabase for MySql {
    type Place = Database;

    const MODULE: &'static str = "mariadb";
    const MIGRATIONS: &'static str = "mysql";
    const BIG: &'static str = "SIGNED";
    const CATALOGUE: &'static str = "SELECT CAST(CONCAT_WS(' ', table_name, column_name, column_type, is_nullable, column_default, collation_name, \
         extra) AS CHAR) AS line FROM information_schema.columns WHERE table_schema = DATABASE() \
         UNION ALL SELECT CAST(CONCAT_WS(' ', table_name, index_name, seq_in_index, column_name) AS CHAR) FROM \
         information_schema.statistics WHERE table_schema = DATABASE() ORDER BY line";
    const DROP_INDEX: &'static str = "DROP INDEX idempotency_records_due ON idempotency_records";

    async fn place() -> Arc<Database> {
        static SERVER: Shared = Shared::new();

        let place = SERVER.database(async || Server::mariadb()).await;
        let mut admin = MySqlConnection::connect(&format!("mysql://root@127.0.0.1:{}", place.port())).await.unwrap();
        MySql::say(&mut admin, &format!("CREATE DATABASE {}", place.name)).await.unwrap();
        Arc::new(place)
    }

    fn url(place: &Database) -> String {
        format!("mysql://root@127.0.0.1:{}/{}", place.port(), place.name)
    }

    async fn connect(url: &str, connections: u32) -> Pool<MySql> {
        let options: MySqlConnectOptions = url.parse().unwrap();
        MySqlPoolOptions::new().max_connections(connections).connect_with(options).await.unwrap()
    }

    async fn build(builder: SqlStoreBuilder<MySql>, url: &str) -> MySqlStore {
        builder.connect(url).await.unwrap()
    }

    same_for_each_database!();
}
