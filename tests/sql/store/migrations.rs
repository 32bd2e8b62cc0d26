//! The table: created by `migrate`, by the files of the package, and brought up from an older one.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use sqlx::Pool;
use tower_idempotency::{
    sql::SqlStore,
    store::{Claimed, Store, StoreErrorKind},
};

use super::{
    races::{claim, key},
    run, store_on,
};
use crate::database::TestDatabase;

/// How long a start may take beside a long transaction, and how much longer a claim beside it.
const SOON: Duration = Duration::from_secs(1);
const MORE: Duration = Duration::from_millis(100);

/// For machines that are busy.
const LENIENCY: Duration = Duration::from_millis(900);

/// The files do what `migrate` does, for the records, the outbox and the message log, and take it back.
pub(super) async fn the_files_of_the_package<D: TestDatabase>() {
    let place = D::place().await;
    let pool = D::pool(&place, 1).await;
    let file = |what: &str, direction: &str| {
        let name = format!(
            "migrations/{}/{what}/{:04}_idempotency_{what}.{direction}.sql",
            D::MIGRATIONS,
            SqlStore::<D>::SCHEMA_VERSION
        );
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).unwrap()
    };
    let store = SqlStore::<D>::new(pool.clone());
    assert_eq!(file("records", "up"), store.schema());
    assert_eq!(file("outbox", "up"), store.outbox().schema());
    assert_eq!(file("message_log", "up"), store.message_log().schema());
    let empty = D::lines(&pool, D::CATALOGUE).await;

    let migrate = async || {
        store.migrate().await.unwrap();
        store.outbox().migrate().await.unwrap();
        store.message_log().migrate().await.unwrap();
    };
    migrate().await;
    let migrated = D::lines(&pool, D::CATALOGUE).await;
    assert!(migrated.len() > empty.len(), "{migrated:?}");
    for what in ["records", "outbox", "message_log"] {
        run::<D>(&pool, &file(what, "down")).await;
    }
    assert_eq!(D::lines(&pool, D::CATALOGUE).await, empty);

    for what in ["records", "outbox", "message_log"] {
        run::<D>(&pool, &file(what, "up")).await;
    }
    assert_eq!(D::lines(&pool, D::CATALOGUE).await, migrated);
    migrate().await;
    assert_eq!(D::lines(&pool, D::CATALOGUE).await, migrated);
}

/// Another process starts while a handler has a transaction open that has written to the tables.
pub(super) async fn a_start_beside_a_long_transaction<D: TestDatabase>() {
    let place = D::place().await;
    let (store, start) = (store_on::<D>(&place).await, store_on::<D>(&place).await);
    let holder = D::pool(&place, 1).await;
    store.migrate().await.unwrap();
    store.outbox().migrate().await.unwrap();
    let held = hold(&holder, &[&old_row("held"), MESSAGE]).await;
    let mut alone = Duration::ZERO;
    for n in 0..20 {
        if D::NAME != "SQLite" {
            let sent = Instant::now();
            assert!(matches!(store.claim(&key(&format!("alone-{n}")), &claim()).await.unwrap(), Claimed::Granted(_)));
            alone = alone.max(sent.elapsed());
        }
    }
    let starting = tokio::spawn(async move {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let began = Instant::now();
            start.migrate().await.unwrap();
            start.outbox().migrate().await.unwrap();
            slowest = slowest.max(began.elapsed());
        }
        slowest
    });
    let mut slowest = Duration::ZERO;
    // On SQLite no claim is written beside an open transaction in any case.
    for n in 0.. {
        if starting.is_finished() || D::NAME == "SQLite" {
            break;
        }
        let sent = Instant::now();
        assert!(matches!(store.claim(&key(&format!("beside-{n}")), &claim()).await.unwrap(), Claimed::Granted(_)));
        slowest = slowest.max(sent.elapsed());
    }
    let took = starting.await.unwrap();
    println!(
        "the slowest of 20 starts beside a long transaction took {took:?}, the slowest claim beside them {slowest:?}, \
         without them {alone:?}"
    );
    assert!(took < SOON + LENIENCY, "{took:?}");
    assert!(slowest < alone + MORE + LENIENCY, "{slowest:?}, without a start {alone:?}");
    drop(held);
}

const MESSAGE: &str = "INSERT INTO idempotency_outbox (id, topic, payload, created_ms, attempts, due_ms, lease_ends_ms) \
                       VALUES ('7', 'orders', '', 0, 0, 0, 0)";

/// A connection with an open transaction that has written something.
async fn hold<D: TestDatabase>(pool: &Pool<D>, written: &[&str]) -> sqlx::pool::PoolConnection<D> {
    assert_eq!(pool.options().get_max_connections(), 1, "the next statement goes over the same connection");
    run::<D>(pool, if D::NAME == "SQLite" { "BEGIN IMMEDIATE" } else { "BEGIN" }).await;
    for text in written {
        run::<D>(pool, text).await;
    }
    let mut connection = pool.acquire().await.unwrap();
    connection.close_on_drop();
    connection
}

/// What an older process writes, which knows neither `trace` nor what else has a default.
fn old_row(name: &str) -> String {
    format!(
        "INSERT INTO idempotency_records (id, namespace, route, record_key, state, attempt, claimant, fingerprint, caller, \
         at_most_once, takeover, created_ms, changed_ms, lease_ends_ms, expires_ms) VALUES \
         ('{name}', '', '/', '{name}', 'running', 1, '', '', '', FALSE, FALSE, 0, 0, 0, 0)"
    )
}

/// A table of an older version gets what it lacks while older processes go on, and while a transaction holds it: that one
/// is waited for, and nobody waits behind.
pub(super) async fn a_table_that_lacks_something<D: TestDatabase>() {
    let place = D::place().await;
    let store = store_on::<D>(&place).await;
    let (pool, holder) = (store.pool().clone(), D::pool(&place, 1).await);
    let whole = sorted(D::lines(&pool, D::CATALOGUE).await);
    run::<D>(&pool, "ALTER TABLE idempotency_records DROP COLUMN trace").await;
    run::<D>(&pool, D::DROP_INDEX).await;
    let error = store.claim(&key("early"), &claim()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");

    let held = hold(&holder, &[&old_row("held")]).await;
    let migration = tokio::spawn({
        let store = store.clone();
        async move { store.migrate().await }
    });
    let (began, mut slowest) = (Instant::now(), Duration::ZERO);
    if D::NAME != "SQLite" {
        for n in 0.. {
            let sent = Instant::now();
            run::<D>(&pool, &old_row(&format!("beside-{n}"))).await;
            slowest = slowest.max(sent.elapsed());
            if began.elapsed() > Duration::from_secs(2) {
                break;
            }
        }
        println!("the slowest statement of an older process beside a migration took {slowest:?}");
        assert!(slowest < Duration::from_secs(1), "{slowest:?}");
        assert!(!migration.is_finished());
    }
    drop(held);
    migration.await.unwrap().unwrap();
    if D::NAME != "SQLite" {
        // SQLite adds a column to the text of the table.
        assert_eq!(sorted(D::lines(&pool, D::CATALOGUE).await), whole);
    }
    assert!(matches!(store.claim(&key("late"), &claim()).await.unwrap(), Claimed::Granted(_)));
    run::<D>(&pool, &old_row("after")).await;
}

/// The place of a column within its table does not matter.
fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_unstable();
    lines
}

/// A table of somebody else's is not made one of records.
pub(super) async fn another_table_is_left_alone<D: TestDatabase>() {
    let place = D::place().await;
    let pool = D::pool(&place, 1).await;
    run::<D>(&pool, "CREATE TABLE others (id BIGINT)").await;
    let store = SqlStore::<D>::builder().table("others").unwrap().pool(pool);
    let error = store.migrate().await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Misconfigured, "{error}");
    assert!(error.to_string().contains("`schema()`"), "{error}");
}

/// Transactions that overlap, so that the table is never free, do not keep a migration out.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) async fn transactions_without_a_gap<D: TestDatabase>() {
    let place = D::place().await;
    let store = store_on::<D>(&place).await;
    run::<D>(store.pool(), "ALTER TABLE idempotency_records DROP COLUMN trace").await;
    let mut holders = Vec::new();
    for name in ["one", "other"] {
        let pool = D::pool(&place, 1).await;
        holders.push(tokio::spawn(async move {
            for n in 0.. {
                run::<D>(&pool, "BEGIN").await;
                run::<D>(&pool, &old_row(&format!("{name}-{n}"))).await;
                tokio::time::sleep(Duration::from_millis(400)).await;
                run::<D>(&pool, "COMMIT").await;
            }
        }));
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    store.migrate().await.unwrap();
    for holder in holders {
        assert!(!holder.is_finished(), "a transaction has failed");
        holder.abort();
    }
    assert!(matches!(store.claim(&key("late"), &claim()).await.unwrap(), Claimed::Granted(_)));
}

/// A later version adds columns: this one says which it does not know, and works on.
pub(super) async fn columns_of_a_later_version_are_named<D: TestDatabase>() {
    let place = D::place().await;
    let pool = D::pool(&place, 1).await;
    let store = SqlStore::<D>::new(pool.clone());
    store.migrate().await.unwrap();
    assert!(store.unknown_columns().await.unwrap().is_empty());
    run::<D>(&pool, "ALTER TABLE idempotency_records ADD COLUMN later BIGINT").await;
    assert_eq!(store.unknown_columns().await.unwrap(), ["later"]);
    assert!(store.pending_migrations().await.unwrap().is_empty());
    assert!(matches!(store.claim(&key("a"), &claim()).await.unwrap(), Claimed::Granted(_)));
}
