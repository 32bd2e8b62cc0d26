//! The store on a file of SQLite.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    time::Duration,
};

use sqlx::{Sqlite, SqlitePool, sqlite::SqliteConnectOptions};
use tower_idempotency::{
    SqliteStore,
    store::{Claimed, Finished, Store, StoreErrorKind},
};

use super::{
    conformance::keeps_the_rules,
    races::{claim, key, replays, settled, settlement},
    what_holds_everywhere,
};
use crate::folder::Folder;

what_holds_everywhere!(Sqlite);

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
async fn the_rules_with_the_pool_and_the_table_of_the_application() {
    let folder = Folder::quick();
    drop(store(&folder).await);
    let store = SqliteStore::builder().table("order").unwrap().pool(pool(&folder).await);
    store.migrate().await.unwrap();
    store.migrate().await.unwrap();
    keeps_the_rules(&store).await;
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
async fn with_options_of_the_driver() {
    let folder = Folder::quick();
    store(&folder).await.pool().close().await;
    let store = SqliteStore::builder()
        .connect_with(SqliteConnectOptions::new().filename(folder.path().join("records.db")))
        .await
        .unwrap();
    settled(&store, &key("a")).await;
    let error = SqliteStore::builder().connect_with(SqliteConnectOptions::new().in_memory(true)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
}

#[tokio::test]
async fn the_file_is_for_its_owner() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = Folder::quick();
    settled(&store(&folder).await, &key("a")).await;
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 1, "the file and its log: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    // One that was there before keeps the mode that somebody gave it.
    let shared = folder.path().join("shared.db");
    File::create(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o660)).unwrap();
    SqliteStore::open(&shared).await.unwrap().migrate().await.unwrap();
    assert_eq!(mode(&shared), 0o660);
}
