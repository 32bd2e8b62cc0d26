//! Each verb, as a process, on each store. The tests start the servers that they need.

mod bad_input;
mod doctor;
mod ending;
mod looking;
mod outbox;
mod stand;
mod tables;

#[allow(dead_code)]
#[path = "../../../tests/sql/server.rs"]
mod databases;
#[allow(dead_code)]
#[path = "../../../tests/sql/folder.rs"]
mod folder;
#[allow(dead_code)]
#[path = "../../../tests/redis/cluster/nodes.rs"]
mod nodes;
#[allow(dead_code)]
#[path = "../../../tests/redis/server.rs"]
mod server;

use std::sync::Arc;

use sqlx::Connection;
use tower_idempotency::{MySqlStore, PostgresStore, SqliteStore};

use self::{folder::Folder, nodes::Nodes, stand::Stand};

/// What holds on every store.
async fn every_store(stand: &Stand) {
    looking::inspecting(&stand.with_namespace("inspecting")).await;
    looking::hashed_keys(&stand.with_namespace("hashed")).await;
    looking::sealed_answers_stay_sealed(&stand.with_namespace("sealed")).await;
    looking::listing(&stand.with_namespace("listing")).await;
    looking::paging(&stand.with_namespace("paging")).await;
    looking::counting(&stand.with_namespace("counting")).await;
    doctor::abandoned_records(&stand.with_namespace("doctor")).await;
    ending::settling(&stand.with_namespace("settling")).await;
    ending::releasing(&stand.with_namespace("releasing")).await;
    ending::forgetting(&stand.with_namespace("forgetting")).await;
    ending::what_is_running_is_left_alone(&stand.with_namespace("running")).await;
}

/// What holds on every database.
macro_rules! every_database {
    ($stand:expr, $store:expr, $drop_index:expr) => {
        every_store(&$stand).await;
        tables::purging(&$stand.with_namespace("purging")).await;
        tables::migrating(&$stand, &$store, $drop_index).await;
        outbox::listing(&$stand, &$store).await;
        outbox::retrying_and_discarding(&$stand, &$store).await;
        doctor::a_table_that_lacks_something(&$stand, &$store, $drop_index).await;
        doctor::messages_that_wait(&$stand, &$store).await;
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_sqlite() {
    let folder = Folder::new();
    let path = folder.path().join("records.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.migrate().await.unwrap();
    let stand = Stand::new(&format!("sqlite:{}", path.display()), store.clone());
    every_database!(stand, store, "DROP INDEX other_due");
    doctor::of_sqlite(&stand, &path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_postgres() {
    let server = databases::Server::postgres();
    let url = format!("postgres://tests:secret@127.0.0.1:{}/postgres", server.port());
    let store = PostgresStore::connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    let stand = Stand::new(&url, store.clone());
    every_database!(stand, store, "DROP INDEX other_due");
    doctor::of_postgres(&stand, &store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_mariadb() {
    let server = databases::Server::mariadb();
    let root = format!("mysql://root@127.0.0.1:{}", server.port());
    let mut admin = sqlx::MySqlConnection::connect(&root).await.unwrap();
    sqlx::raw_sql("CREATE DATABASE shop").execute(&mut admin).await.unwrap();
    let url = format!("{root}/shop");
    let store = MySqlStore::connect(&url).await.unwrap();
    store.migrate().await.unwrap();
    let stand = Stand::new(&url, store.clone());
    every_database!(stand, store, "DROP INDEX other_due ON other");
    doctor::of_mariadb(&stand, &store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_redis() {
    let server = server::Server::start(&[]);
    let stand = Stand::new(&server.url(), server.store().await);
    every_store(&stand).await;
    tables::redis_has_none(&stand);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_redis_cluster() {
    let nodes = Nodes::start();
    let store = Arc::new(nodes.store().await);
    // Written as servers of one URL, and as one server with `--cluster`.
    let hosts: Vec<_> = nodes.urls().iter().map(|url| url.trim_start_matches("redis://").to_owned()).collect();
    every_store(&Stand::new(&format!("redis://{}", hosts.join(",")), store.as_ref().clone())).await;
    let one = Stand::new(&nodes.urls()[0], store.as_ref().clone());
    assert_eq!(one.tool(&["stats", "--cluster"]).code, 0);
    assert!(one.tool(&["stats"]).error.contains("cluster"));
    doctor::of_a_cluster(&one, &nodes);
}
