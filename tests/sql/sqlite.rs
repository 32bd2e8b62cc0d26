//! The store on a file of SQLite.

use std::{future::ready, time::Duration};

use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tower_idempotency::{
    SqliteStore, StoreErrorKind,
    store::{Claimed, Finished, Operator, Store},
    testing::suite,
};

use crate::{
    folder::Folder,
    kept_request::{a_request_past_the_limit_is_not_kept, the_request_is_kept_where_asked_for},
    races::{claim, expired, key, many_tasks_on_the_same_keys, replays, settled, settlement},
    records::{
        a_claim_can_be_taken_back, a_row_of_a_later_version, all_of_a_claim_is_kept,
        an_abandoned_claim_can_be_taken_back,
    },
};

async fn store(folder: &Folder) -> SqliteStore {
    let store =
        SqliteStore::builder().busy_timeout(Duration::from_secs(20)).open(folder.path().join("records.db")).await;
    let store = store.unwrap();
    store.migrate().await.unwrap();
    store
}

/// A pool of the application's.
async fn pool(folder: &Folder) -> SqlitePool {
    let options = SqliteConnectOptions::new().filename(folder.path().join("records.db"));
    SqlitePool::connect_with(options).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_every_store() {
    let folder = Folder::quick();
    let store = store(&folder).await;
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_with_the_pool_and_the_table_of_the_application() {
    let folder = Folder::quick();
    drop(store(&folder).await);
    let store = SqliteStore::builder().table("order").unwrap().pool(pool(&folder).await);
    store.migrate().await.unwrap();
    store.migrate().await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tasks() {
    let folder = Folder::quick();
    many_tasks_on_the_same_keys([store(&folder).await, store(&folder).await]).await;
}

#[tokio::test]
async fn a_file_that_stays_locked_is_unavailable_and_still_replays() {
    let folder = Folder::quick();
    let path = folder.path().join("records.db");
    settled(&store(&folder).await, &key("settled")).await;
    let store = SqliteStore::builder().busy_timeout(Duration::from_millis(100)).open(path).await.unwrap();

    let writer = pool(&folder).await.begin_with("BEGIN IMMEDIATE").await.unwrap();
    let error = store.claim(&key("new"), &claim()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error}");
    assert!(error.to_string().contains("busy timeout"), "{error}");
    // It reads, and no more.
    replays(&store, &key("settled")).await;

    writer.rollback().await.unwrap();
    settled(&store, &key("new")).await;
}

#[tokio::test]
async fn a_replay_does_not_write() {
    let folder = Folder::quick();
    let store = store(&folder).await;
    settled(&store, &key("a")).await;
    let mut other = pool(&folder).await.acquire().await.unwrap();
    // It changes whenever another connection has written.
    let mut version =
        async || sqlx::query_scalar::<_, i64>("PRAGMA data_version").fetch_one(&mut *other).await.unwrap();
    let before = version().await;
    for _ in 0..20 {
        replays(&store, &key("a")).await;
    }
    assert_eq!(version().await, before);
    settled(&store, &key("b")).await;
    assert_ne!(version().await, before);
}

#[tokio::test]
async fn records_outlive_the_store() {
    let folder = Folder::quick();
    let (first, key) = (claim(), key("a"));
    store(&folder).await.claim(&key, &first).await.unwrap();
    let store = store(&folder).await;
    assert!(
        matches!(store.claim(&key, &claim()).await.unwrap(), Claimed::Running { holder, .. } if holder == first.claimant)
    );
    assert!(matches!(store.settle(&key, &settlement(&first)).await.unwrap(), Finished::Done));
    replays(&store, &key).await;
}

#[tokio::test]
async fn the_request_is_kept() {
    let folder = Folder::quick();
    let store = store(&folder).await;
    the_request_is_kept_where_asked_for(store.clone()).await;
    a_request_past_the_limit_is_not_kept(store).await;
}

#[tokio::test]
async fn what_is_wrong_is_told() {
    let folder = Folder::quick();
    let store = SqliteStore::open(folder.path().join("records.db")).await.unwrap();
    let error = store.claim(&key("a"), &claim()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured);
    assert!(error.to_string().contains("table is missing"), "{error}");

    for url in [
        "sqlite::memory:",
        "sqlite://x?mode=memory",
        "sqlite:///no/such/folder/x.db",
        "postgres://user:secret@host/x",
        "secret",
    ] {
        let error = SqliteStore::connect(url).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{url}: {error}");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
}

#[tokio::test]
async fn an_operator_can_look_with_plain_sql() {
    let folder = Folder::quick();
    let store = store(&folder).await.namespace("shop");
    settled(&store, &key("7f0c")).await;
    let columns = "namespace, route, scope, record_key, state, attempt, note IS NULL, changed_ms <= expires_ms";
    let text = format!("SELECT {columns} FROM idempotency_records");
    let row: (String, String, String, String, String, i64, bool, bool) =
        sqlx::query_as(sqlx::AssertSqlSafe(text)).fetch_one(store.pool()).await.unwrap();
    let words = [&row.0, &row.1, &row.2, &row.3, &row.4];
    assert_eq!(words, ["shop", "/orders/{id}", "ann", "7f0c", "settled"]);
    assert_eq!((row.5, row.6, row.7), (1, true, true));
}

#[tokio::test]
async fn a_background_task_purges() {
    let folder = Folder::quick();
    let store = store(&folder).await;
    for n in 0..110 {
        expired(&store, &key(&n.to_string())).await;
    }
    for n in 110..120 {
        settled(&store, &key(&n.to_string())).await;
    }
    assert_eq!(store.purge(60).await.unwrap(), 60);
    let purging = store.purge_every(Duration::from_millis(1));
    let rows = || async {
        let count: i64 =
            sqlx::query_scalar("SELECT COUNT(*) FROM idempotency_records").fetch_one(store.pool()).await.unwrap();
        count
    };
    while rows().await > 10 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((rows().await, store.stats().await.unwrap().settled), (10, 10));
    drop(purging);
}

#[tokio::test]
async fn the_record_format() {
    let folder = Folder::quick();
    let store = store(&folder).await;
    all_of_a_claim_is_kept(&store).await;
    a_claim_can_be_taken_back(&store).await;
    an_abandoned_claim_can_be_taken_back(&store).await;
    a_row_of_a_later_version(&store, async |text| {
        let row = sqlx::query_scalar(text).fetch_optional(store.pool()).await.unwrap();
        row.unwrap_or_default()
    })
    .await;
}
