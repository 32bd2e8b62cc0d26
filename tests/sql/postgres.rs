//! The store on a PostgreSQL server.

use std::{future::ready, time::Duration};

use sqlx::{PgPool, Postgres, postgres::PgPoolOptions};
use tower_idempotency::{
    PostgresStore, StoreErrorKind,
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

fn url(server: &Server) -> String {
    format!("postgres://tests:secret@127.0.0.1:{}/postgres", server.port())
}

async fn store(server: &Server) -> PostgresStore {
    let store = PostgresStore::connect(&url(server)).await.unwrap();
    store.migrate().await.unwrap();
    store
}

/// A pool of the application's, whose sessions have these settings.
async fn pool(server: &Server, settings: &[(&str, &str)]) -> PgPool {
    let options: sqlx::postgres::PgConnectOptions = url(server).parse().unwrap();
    PgPoolOptions::new().max_connections(20).connect_with(options.options(settings.iter().copied())).await.unwrap()
}

/// A pool of one connection.
async fn single(server: &Server) -> PgPool {
    PgPoolOptions::new().max_connections(1).connect(&url(server)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_every_store() {
    let server = Server::postgres();
    let store = store(&server).await;
    walk::agrees_with_the_rules(|namespace| store.namespace(namespace)).await;
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;

    let own = pool(&server, &[("default_transaction_isolation", "serializable")]).await;
    sqlx::raw_sql("CREATE SCHEMA \"select\"").execute(&own).await.unwrap();
    let store = PostgresStore::builder().table("select.order").unwrap().pool(own);
    store.migrate().await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks() {
    let server = Server::postgres();
    many_tasks_on_the_same_keys([store(&server).await, store(&server).await]).await;
    // Here those who lose are told so by errors, which nobody hears of.
    let own = pool(&server, &[("default_transaction_isolation", "repeatable read")]).await;
    let strict = || PostgresStore::new(own.clone()).namespace("strict");
    many_tasks_on_the_same_keys([strict(), strict()]).await;
}

#[tokio::test]
async fn a_replay_neither_writes_nor_waits() {
    let server = Server::postgres();
    let store = store(&server).await;
    let keys: Vec<_> = (0..20).map(|n| key(&n.to_string())).collect();
    for key in &keys {
        settled(&store, key).await;
    }
    // To one of the two the keys are new.
    let other = PostgresStore::connect(&url(&server)).await.unwrap();
    let pool = pool(&server, &[]).await;
    let mut holder = pool.begin().await.unwrap();
    sqlx::query("SELECT 1 FROM idempotency_records FOR UPDATE").execute(&mut *holder).await.unwrap();
    // Whoever writes takes the next number of a transaction.
    let next = || async {
        let text = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text";
        sqlx::query_scalar::<_, String>(text).fetch_one(&pool).await.unwrap()
    };
    let before = next().await;
    for key in &keys {
        replays(&store, key).await;
        replays(&other, key).await;
    }
    assert_eq!(next().await, before);
    settled(&store, &key("b")).await;
    assert_ne!(next().await, before);
}

#[tokio::test]
async fn a_key_that_was_met_and_is_gone_is_free() {
    let server = Server::postgres();
    let store = store(&server).await;
    for _ in 0..3 {
        settled(&store, &key("a")).await;
        replays(&store, &key("a")).await;
        assert!(store.forget(&key("a")).await.unwrap());
    }
}

#[tokio::test]
async fn a_deadlock_is_tried_again() {
    let server = Server::postgres();
    // Each looks for a deadlock once, after so long a wait: the store's session has to be the one that finds it.
    let store = PostgresStore::new(pool(&server, &[("deadlock_timeout", "2s")]).await);
    store.migrate().await.unwrap();
    for name in ["a", "b"] {
        expired(&store, &key(name)).await;
    }
    let pool = pool(&server, &[("deadlock_timeout", "60s")]).await;
    let mut other = pool.begin().await.unwrap();
    let lock = "SELECT 1 FROM idempotency_records WHERE record_key = $1 FOR UPDATE";
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

/// Ends all other sessions.
async fn cut(pool: &PgPool) {
    let text = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
    let _ = sqlx::query(text).execute(pool).await;
}

#[tokio::test]
async fn a_cut_connection_is_not_seen_by_callers() {
    let server = Server::postgres();
    let (store, pool) = (store(&server).await, pool(&server, &[]).await);
    let first = claim();
    cut(&pool).await;
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
    let server = Server::postgres();
    let pool = pool(&server, &[]).await;
    many_tasks_while([store(&server).await, store(&server).await], async || cut(&pool).await).await;
}

#[tokio::test]
async fn the_clocks_of_applications_do_not_count() {
    let server = Server::postgres();
    let stores = [store(&server).await, store(&server).await];
    clocks_of_applications_do_not_count(stores, &url(&server), "postgres::a_process_whose_clock_is_off").await;
}

#[tokio::test]
async fn a_process_whose_clock_is_off() {
    clocks::child(async |url: String| PostgresStore::connect(&url).await).await;
}

#[tokio::test]
async fn windows() {
    let server = Server::postgres();
    windows_hold_and_end(store(&server).await).await;
}

#[tokio::test]
async fn the_request_is_kept() {
    let server = Server::postgres();
    let store = store(&server).await;
    the_request_is_kept_where_asked_for(store.clone()).await;
    a_request_past_the_limit_is_not_kept(store).await;
}

#[tokio::test]
async fn what_is_wrong_is_told() {
    let server = Server::postgres();
    let good = PostgresStore::connect(&url(&server)).await.unwrap();
    let error = good.claim(&key("a"), &claim()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("migrate"), "{error}");
    assert!(!format!("{good:?}").contains("secret"));

    let port = server.port();
    for url in [
        format!("postgres://nobody:secret@127.0.0.1:{port}/postgres"),
        format!("postgres://tests:secret@127.0.0.1:{port}/missing"),
        "mysql://user:secret@host/x".into(),
        "postgres://user:secret@host:port/x".into(),
        "postgres://user:secret@host/x?sslmode=secret".into(),
        "secret".into(),
    ] {
        let error = PostgresStore::connect(&url).await.unwrap_err();
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
    let server = Server::postgres();
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
const CATALOGUE: &str = "SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default, is_identity) AS line FROM \
     information_schema.columns WHERE table_schema = 'public' \
     UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY line";

#[tokio::test]
async fn the_files_of_the_package() {
    let server = Server::postgres();
    migrations::the_files_of_the_package(single(&server).await, "postgres", CATALOGUE).await;
}

#[tokio::test]
async fn a_start_beside_a_long_transaction() {
    let server = Server::postgres();
    let (one, other) = (store(&server).await, store(&server).await);
    migrations::a_start_beside_a_long_transaction(single(&server).await, one, other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_lacks_something() {
    let server = Server::postgres();
    let store = store(&server).await;
    migrations::a_table_that_lacks_something(
        single(&server).await,
        store,
        CATALOGUE,
        "DROP INDEX idempotency_records_due",
    )
    .await;
}

#[tokio::test]
async fn another_table_is_left_alone() {
    let server = Server::postgres();
    migrations::another_table_is_left_alone(single(&server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_wait_for_one() {
    let server = Server::postgres();
    waiting::many_wait_for_one(store(&server).await, store(&server).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_expired_goes() {
    let server = Server::postgres();
    purging::what_has_expired_goes(async |builder: SqlStoreBuilder<Postgres>| {
        builder.connect(&url(&server)).await.unwrap()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_purges_at_a_time() {
    let server = Server::postgres();
    let busy = "SELECT query FROM pg_stat_activity WHERE state = 'active' AND wait_event_type = 'Lock' AND query LIKE 'DELETE%'";
    let store = async |builder: SqlStoreBuilder<Postgres>| builder.connect(&url(&server)).await.unwrap();
    purging::one_purges_at_a_time(single(&server).await, store, busy).await;
}

#[tokio::test]
async fn an_answer_that_is_too_large() {
    let server = Server::postgres();
    an_answer_of(&store(&server).await, GIGABYTE).await;
}

#[tokio::test]
async fn with_options_of_the_driver() {
    let server = Server::postgres();
    store(&server).await.pool().close().await;
    let store = PostgresStore::builder().connect_with(url(&server).parse().unwrap()).await.unwrap();
    settled(&store, &key("a")).await;
}
