//! On MariaDB.

use std::sync::Arc;

use sqlx::{
    Connection, MySql, MySqlConnection, Pool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};

use crate::{
    lab::{Lab, same_for_lab},
    server::Server,
    shared::{Database, Shared},
    staging, what_holds_everywhere,
};

impl Lab for MySql {
    type Place = Database;

    const MODULE: &'static str = "mariadb";
    const BIG: &'static str = "SIGNED";

    async fn place() -> Arc<Database> {
        static SERVER: Shared = Shared::new();

        let place = SERVER.database(async || Server::mariadb()).await;
        let mut admin = MySqlConnection::connect(&format!("mysql://root@127.0.0.1:{}", place.port())).await.unwrap();
        MySql::say(&mut admin, &format!("CREATE DATABASE {}", place.name)).await.unwrap();
        Arc::new(place)
    }

    fn address(place: &Database) -> String {
        format!("mysql://root@127.0.0.1:{}/{}", place.port(), place.name)
    }

    async fn open(address: &str) -> Pool<MySql> {
        let options: MySqlConnectOptions = address.parse().unwrap();
        MySqlPoolOptions::new().max_connections(8).connect_with(options).await.unwrap()
    }

    same_for_lab!();
}

what_holds_everywhere!(MySql);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_late_is_not_skipped() {
    staging::what_is_committed_late_is_not_skipped::<MySql>().await;
}
