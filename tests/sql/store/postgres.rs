//! The store on a PostgreSQL server.

use std::time::Duration;

use sqlx::{PgPool, Postgres, postgres::PgPoolOptions};
use tower_idempotency::{
    PostgresStore,
    store::{Claimed, Finished, Store, StoreAdmin, StoreErrorKind},
};

use super::{
    clocks::{self, clocks_of_applications_do_not_count},
    conformance::keeps_the_rules,
    migrations, purging,
    races::{claim, expired, key, many_tasks, many_tasks_while, replays, settled, settlement},
    what_holds_everywhere,
};
use crate::server::Server;

what_holds_everywhere!(Postgres);

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

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_with_the_pool_and_the_table_of_the_application() {
    let server = Server::postgres();
    let own = pool(&server, &[("default_transaction_isolation", "serializable")]).await;
    sqlx::raw_sql("CREATE SCHEMA \"select\"").execute(&own).await.unwrap();
    let store = PostgresStore::builder().table("select.order").unwrap().pool(own);
    store.migrate().await.unwrap();
    keeps_the_rules(&store).await;
}

/// The losers receive errors, which no caller sees.
#[tokio::test(flavor = "multi_thread")]
async fn many_tasks_in_strict_transactions() {
    let server = Server::postgres();
    store(&server).await;
    let own = pool(&server, &[("default_transaction_isolation", "repeatable read")]).await;
    let strict = || PostgresStore::new(own.clone()).namespace("strict");
    many_tasks([strict(), strict()]).await;
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
    // A writer takes the next number of a transaction.
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
    clocks_of_applications_do_not_count(stores, &url(&server), "store::postgres::a_process_whose_clock_is_off").await;
}

#[tokio::test]
async fn a_process_whose_clock_is_off() {
    clocks::child(async |url: String| PostgresStore::connect(&url).await).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn one_purges_at_a_time() {
    let busy = "SELECT query FROM pg_stat_activity WHERE state = 'active' AND wait_event_type = 'Lock' AND query LIKE 'DELETE%' \
                AND datname = current_database()";
    purging::one_purges_at_a_time::<Postgres>(busy).await;
}

#[tokio::test]
async fn with_options_of_the_driver() {
    let server = Server::postgres();
    store(&server).await.pool().close().await;
    let store = PostgresStore::builder().connect_with(url(&server).parse().unwrap()).await.unwrap();
    settled(&store, &key("a")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_migration_beside_transactions_without_a_gap() {
    migrations::transactions_without_a_gap::<Postgres>().await;
}
