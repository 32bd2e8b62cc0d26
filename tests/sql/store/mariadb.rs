//! The store on a MariaDB server.

use std::time::Duration;

use sqlx::{
    Connection, Executor, MySql, MySqlConnection, MySqlPool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};
use tower_idempotency::{
    MySqlStore,
    store::{Claimed, Finished, Store, StoreAdmin, StoreErrorKind},
};

use super::{
    clocks::{self, clocks_of_applications_do_not_count},
    conformance::keeps_the_rules,
    large_answers::an_answer_of,
    migrations, purging,
    races::{claim, expired, key, many_tasks_while, replays, settled, settlement},
    what_holds_everywhere,
};
use crate::server::Server;

what_holds_everywhere!(MySql);

async fn server() -> Server {
    let server = Server::mariadb();
    let mut admin = MySqlConnection::connect(&format!("mysql://root@127.0.0.1:{}", server.port())).await.unwrap();
    let text = "CREATE DATABASE tests; CREATE USER tests@localhost IDENTIFIED BY 'secret'; \
                GRANT ALL ON *.* TO tests@localhost";
    sqlx::raw_sql(text).execute(&mut admin).await.unwrap();
    server
}

fn url(server: &Server) -> String {
    format!("mysql://tests:secret@127.0.0.1:{}/tests", server.port())
}

async fn store(server: &Server) -> MySqlStore {
    let store = MySqlStore::connect(&url(server)).await.unwrap();
    store.migrate().await.unwrap();
    store
}

/// A pool of the application's, whose sessions begin with this statement.
async fn pool(server: &Server, first: &'static str) -> MySqlPool {
    let options: MySqlConnectOptions = url(server).parse().unwrap();
    let pool = MySqlPoolOptions::new()
        .max_connections(20)
        .after_connect(move |connection, _| Box::pin(async move { connection.execute(first).await.map(drop) }));
    pool.connect_with(options).await.unwrap()
}

/// A pool of one connection.
async fn single(server: &Server) -> MySqlPool {
    MySqlPoolOptions::new().max_connections(1).connect(&url(server)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_with_the_pool_and_the_table_of_the_application() {
    let server = server().await;
    let own = pool(&server, "SET time_zone = '+05:30', tx_isolation = 'SERIALIZABLE'").await;
    let store = MySqlStore::builder().table("tests.order").unwrap().pool(own);
    store.migrate().await.unwrap();
    keeps_the_rules(&store).await;
}

#[tokio::test]
async fn a_replay_neither_writes_nor_waits() {
    let server = server().await;
    let store = store(&server).await;
    settled(&store, &key("a")).await;
    let pool = pool(&server, "DO 1").await;
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM idempotency_records FOR UPDATE").execute(&mut *holder).await.unwrap();
    // What the server was asked to write, by anybody.
    let writes = || async {
        let text = "SELECT CAST(SUM(variable_value) AS CHAR) FROM information_schema.global_status WHERE variable_name \
                    IN ('Com_insert', 'Com_update', 'Com_delete', 'Handler_write', 'Handler_update', 'Handler_delete', \
                    'Innodb_rows_inserted', 'Innodb_rows_updated', 'Innodb_rows_deleted')";
        sqlx::query_scalar::<_, String>(text).fetch_one(&pool).await.unwrap()
    };
    let before = writes().await;
    for _ in 0..20 {
        replays(&store, &key("a")).await;
    }
    assert_eq!(writes().await, before);
    holder.rollback().await.unwrap();
    settled(&store, &key("b")).await;
    assert_ne!(writes().await, before);
}

#[tokio::test]
async fn a_lock_that_is_held_for_long_is_tried_for_again() {
    let server = server().await;
    store(&server).await;
    let store = MySqlStore::new(pool(&server, "SET innodb_lock_wait_timeout = 1").await);
    let first = claim();
    store.claim(&key("a"), &first).await.unwrap();
    let mut holder = pool(&server, "DO 1").await.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM idempotency_records FOR UPDATE").execute(&mut *holder).await.unwrap();
    let settle = tokio::spawn({
        let store = store.clone();
        async move { store.settle(&key("a"), &settlement(&first)).await }
    });
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    holder.rollback().await.unwrap();
    assert!(matches!(settle.await.unwrap().unwrap(), Finished::Done));
}

#[tokio::test]
async fn a_deadlock_is_tried_again() {
    let server = server().await;
    let store = store(&server).await;
    for name in ["a", "b"] {
        expired(&store, &key(name)).await;
    }
    let pool = pool(&server, "DO 1").await;
    let mut other = pool.begin().await.unwrap();
    // Of two, InnoDB sacrifices the one that has written less.
    let heavy = "CREATE TEMPORARY TABLE heavy (n INT) ENGINE = InnoDB; \
                 INSERT INTO heavy SELECT seq FROM seq_1_to_1000";
    sqlx::raw_sql(heavy).execute(&mut *other).await.unwrap();
    let lock = "UPDATE idempotency_records SET attempt = 7 WHERE id = (SELECT id FROM (SELECT id FROM \
                idempotency_records WHERE record_key = ?) AS found)";
    sqlx::query(lock).bind("b").execute(&mut *other).await.unwrap();
    let purge = tokio::spawn({
        let store = store.clone();
        async move { store.purge(10).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    // The purge has `a` and waits for `b`.
    sqlx::query(lock).bind("a").execute(&mut *other).await.unwrap();
    other.commit().await.unwrap();
    assert_eq!(purge.await.unwrap().unwrap(), 2);
}

/// Ends all other sessions of the user.
async fn cut(pool: &MySqlPool) {
    let text = "SELECT id FROM information_schema.processlist WHERE user = 'tests' AND id <> CONNECTION_ID()";
    let ids: Vec<i64> = sqlx::query_scalar(text).fetch_all(pool).await.unwrap();
    for id in ids {
        let _ = pool.execute(sqlx::AssertSqlSafe(format!("KILL {id}"))).await;
    }
}

#[tokio::test]
async fn a_cut_connection_is_not_seen_by_callers() {
    let server = server().await;
    let (store, pool) = (store(&server).await, pool(&server, "DO 1").await);
    let first = claim();
    assert!(matches!(store.claim(&key("a"), &first).await.unwrap(), Claimed::Granted(_)));
    for _ in 0..3 {
        cut(&pool).await;
        assert!(matches!(store.claim(&key("a"), &claim()).await.unwrap(), Claimed::Running { .. }));
    }
    cut(&pool).await;
    assert!(matches!(store.settle(&key("a"), &settlement(&first)).await.unwrap(), Finished::Done));
    replays(&store, &key("a")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_whose_connections_are_cut() {
    let server = server().await;
    let pool = pool(&server, "DO 1").await;
    many_tasks_while([store(&server).await, store(&server).await], async || cut(&pool).await).await;
}

#[tokio::test]
async fn the_clocks_of_applications_do_not_count() {
    let server = server().await;
    let stores = [store(&server).await, store(&server).await];
    clocks_of_applications_do_not_count(stores, &url(&server), "store::mariadb::a_process_whose_clock_is_off").await;
}

#[tokio::test]
async fn a_process_whose_clock_is_off() {
    clocks::child(async |url: String| MySqlStore::connect(&url).await).await;
}

#[tokio::test]
async fn what_is_wrong_is_told() {
    let server = server().await;
    let good = MySqlStore::connect(&url(&server)).await.unwrap();
    let error = good.claim(&key("a"), &claim()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("migrate"), "{error}");
    assert!(!format!("{good:?}").contains("secret"));

    let port = server.port();
    for url in [
        format!("mysql://tests:topsecret@127.0.0.1:{port}/tests"),
        format!("mysql://tests:secret@127.0.0.1:{port}/missing"),
        "postgres://user:secret@host/x".into(),
        "mysql://user:secret@host:port/x".into(),
        "secret".into(),
    ] {
        let error = MySqlStore::connect(&url).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{url}: {error:?}");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert!(!format!("{error} {error:?} {source:?}").contains("secret"), "{url}: {error:?}");
    }
    drop(server);
    let error = good.claim(&key("a"), &claim()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_purges_at_a_time() {
    let busy = "SELECT CAST(info AS CHAR) FROM information_schema.processlist WHERE info LIKE 'DELETE%' \
                AND db = DATABASE()";
    purging::one_purges_at_a_time::<MySql>(busy).await;
}

#[tokio::test]
async fn an_answer_larger_than_a_packet() {
    let server = server().await;
    sqlx::query("SET GLOBAL max_allowed_packet = 1048576").execute(&single(&server).await).await.unwrap();
    let store = store(&server).await;
    for bytes in [1_048_576, 3_000_000, 20_000_000] {
        an_answer_of(&store, bytes).await;
    }
}

#[tokio::test]
async fn with_options_of_the_driver() {
    let server = server().await;
    store(&server).await.pool().close().await;
    let store = MySqlStore::builder().connect_with(url(&server).parse().unwrap()).await.unwrap();
    settled(&store, &key("a")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_beside_transactions_without_a_gap() {
    migrations::transactions_without_a_gap::<MySql>().await;
}
