//! The store on a MariaDB server.

use std::{future::ready, time::Duration};

use sqlx::{
    Connection, Executor, MySql, MySqlConnection, MySqlPool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
};
use tower_idempotency::{
    MySqlStore, StoreErrorKind,
    sql::SqlStoreBuilder,
    store::{Claimed, Finished, Store, StoreAdmin},
    testing::suite,
};

use crate::{
    clocks::{self, clocks_of_applications_do_not_count},
    kept_request::{a_request_past_the_limit_is_not_kept, the_request_is_kept_where_asked_for},
    migrations, purging,
    races::{claim, expired, key, many_tasks_on_the_same_keys, many_tasks_while, replays, settled, settlement},
    records::{
        a_claim_can_be_taken_back, a_row_of_a_later_version, all_of_a_claim_is_kept,
        an_abandoned_claim_can_be_taken_back,
    },
    server::Server,
    sizes::{GIGABYTE, an_answer_of},
    waiting, walk,
    windows::windows_hold_and_end,
};

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
async fn the_rules_of_every_store() {
    let server = server().await;
    let store = store(&server).await;
    walk::agrees_with_the_rules(|namespace| store.namespace(namespace)).await;
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;

    let own = pool(&server, "SET time_zone = '+05:30', tx_isolation = 'SERIALIZABLE'").await;
    let store = MySqlStore::builder().table("tests.order").unwrap().pool(own);
    store.migrate().await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks() {
    let server = server().await;
    many_tasks_on_the_same_keys([store(&server).await, store(&server).await]).await;
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
    clocks_of_applications_do_not_count(stores, &url(&server), "mariadb::a_process_whose_clock_is_off").await;
}

#[tokio::test]
async fn a_process_whose_clock_is_off() {
    clocks::child(async |url: String| MySqlStore::connect(&url).await).await;
}

#[tokio::test]
async fn windows() {
    let server = server().await;
    windows_hold_and_end(store(&server).await).await;
}

#[tokio::test]
async fn the_request_is_kept() {
    let server = server().await;
    let store = store(&server).await;
    the_request_is_kept_where_asked_for(store.clone()).await;
    a_request_past_the_limit_is_not_kept(store).await;
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

#[tokio::test]
async fn the_record_format() {
    let server = server().await;
    let store = store(&server).await;
    all_of_a_claim_is_kept(&store).await;
    a_claim_can_be_taken_back(&store).await;
    an_abandoned_claim_can_be_taken_back(&store).await;
    a_row_of_a_later_version(&store, async |text| {
        let row = sqlx::query_scalar(text).fetch_optional(store.pool()).await.unwrap();
        row.unwrap_or_default()
    })
    .await;
}

/// All that is in the database.
const CATALOGUE: &str = "SELECT CAST(CONCAT_WS(' ', table_name, column_name, column_type, is_nullable, column_default, collation_name, extra) AS \
     CHAR) AS line FROM information_schema.columns WHERE table_schema = DATABASE() \
     UNION ALL SELECT CAST(CONCAT_WS(' ', table_name, index_name, seq_in_index, column_name) AS CHAR) FROM \
     information_schema.statistics WHERE table_schema = DATABASE() ORDER BY line";

#[tokio::test]
async fn the_files_of_the_package() {
    let server = server().await;
    migrations::the_files_of_the_package(single(&server).await, "mysql", CATALOGUE).await;
}

#[tokio::test]
async fn a_start_beside_a_long_transaction() {
    let server = server().await;
    let (one, other) = (store(&server).await, store(&server).await);
    migrations::a_start_beside_a_long_transaction(single(&server).await, one, other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_lacks_something() {
    let server = server().await;
    let store = store(&server).await;
    migrations::a_table_that_lacks_something(
        single(&server).await,
        store,
        CATALOGUE,
        "DROP INDEX idempotency_records_due ON idempotency_records",
    )
    .await;
}

#[tokio::test]
async fn another_table_is_left_alone() {
    let server = server().await;
    migrations::another_table_is_left_alone(single(&server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_wait_for_one() {
    let server = server().await;
    waiting::many_wait_for_one(store(&server).await, store(&server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_goes() {
    let server = server().await;
    purging::what_has_expired_goes(async |builder: SqlStoreBuilder<MySql>| {
        builder.connect(&url(&server)).await.unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_purges_at_a_time() {
    let server = server().await;
    let busy = "SELECT CAST(info AS CHAR) FROM information_schema.processlist WHERE info LIKE 'DELETE%'";
    let store = async |builder: SqlStoreBuilder<MySql>| builder.connect(&url(&server)).await.unwrap();
    purging::one_purges_at_a_time(single(&server).await, store, busy).await;
}

#[tokio::test]
async fn an_answer_that_is_too_large() {
    let server = server().await;
    an_answer_of(&store(&server).await, GIGABYTE).await;
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
