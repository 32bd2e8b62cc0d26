//! What has expired goes by itself.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::{sleep, timeout};
use tower_idempotency::{
    Event,
    sql::SqlStore,
    store::{Store, StoreAdmin},
};

use super::races::{claim, expired, key, settled};
use crate::database::TestDatabase;

const SOON: Duration = Duration::from_millis(100);

async fn rows<D: TestDatabase>(store: &SqlStore<D>) -> usize {
    D::lines(store.pool(), "SELECT record_key FROM idempotency_records").await.len()
}

/// Two processes purge, only what is alive is left; a store that is configured not to purges nothing.
pub(super) async fn what_has_expired_goes<D: TestDatabase>() {
    let place = D::place().await;
    let url = D::url(&place);
    let quiet = D::build(SqlStore::<D>::builder().without_purge(), &url).await;
    quiet.migrate().await.unwrap();
    for n in 0..110 {
        expired(&quiet, &key(&n.to_string())).await;
    }
    for n in 110..120 {
        settled(&quiet, &key(&n.to_string())).await;
    }
    sleep(5 * SOON).await;
    assert_eq!(rows(&quiet).await, 120);
    assert_eq!(quiet.purge(60).await.unwrap(), 60);

    let removed = Arc::new(AtomicU64::new(0));
    let purging = [(); 2].map(|()| {
        let removed = removed.clone();
        SqlStore::<D>::builder().purge_every(SOON).observer(move |event: &Event<'_>| {
            if let Event::Purged { table: "idempotency_records", removed: some, .. } = event {
                removed.fetch_add(*some, Relaxed);
            }
        })
    });
    let mut gone_in_all = 50;
    for builder in purging {
        let store = D::build(builder, &url).await;
        // It begins with the first use.
        store.claim(&key("used"), &claim()).await.unwrap();
        let gone = async {
            while rows(&quiet).await > 11 {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(60), gone).await.expect("nothing is purged");
        assert_eq!((rows(&quiet).await, quiet.stats().await.unwrap().settled), (11, 10));
        let reported = async {
            while removed.load(Relaxed) < gone_in_all {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(Duration::from_secs(60), reported).await.expect("a purge is not reported");
        assert_eq!(removed.load(Relaxed), gone_in_all);
        gone_in_all += 5;
        for n in 0..5 {
            expired(&quiet, &key(&n.to_string())).await;
        }
    }
}

/// While one process is at it, another one is not: a row that somebody holds keeps the first one busy. `busy` reads a line
/// for each session that removes rows just now.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(super) async fn one_purges_at_a_time<D: TestDatabase>(busy: &str) {
    let place = D::place().await;
    let (url, holder) = (D::url(&place), D::pool(&place, 1).await);
    let quiet = D::build(SqlStore::<D>::builder().without_purge(), &url).await;
    quiet.migrate().await.unwrap();
    expired(&quiet, &key("held")).await;
    super::run::<D>(&holder, "BEGIN").await;
    super::run::<D>(&holder, "SELECT id FROM idempotency_records FOR UPDATE").await;
    let stores = [
        D::build(SqlStore::<D>::builder().purge_every(SOON), &url).await,
        D::build(SqlStore::<D>::builder().purge_every(SOON), &url).await,
    ];
    for store in &stores {
        store.inspect(&key("used")).await.unwrap();
    }
    let mut most = 0;
    for _ in 0..75 {
        most = most.max(D::lines(quiet.pool(), busy).await.len());
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(most, 1);
    super::run::<D>(&holder, "ROLLBACK").await;
    while rows(&quiet).await > 0 {
        sleep(Duration::from_millis(20)).await;
    }
}

pub(super) async fn a_namespace_is_purged_by_itself<D: TestDatabase>() {
    let place = D::place().await;
    let all = D::build(SqlStore::<D>::builder().without_purge(), &D::url(&place)).await;
    all.migrate().await.unwrap();
    let (one, other) = (all.namespace("one"), all.namespace("other"));
    for n in 0..3 {
        expired(&one, &key(&n.to_string())).await;
        expired(&other, &key(&n.to_string())).await;
    }
    settled(&one, &key("kept")).await;
    let count = async |store: &SqlStore<D>| {
        let expired = store.expired().await.unwrap();
        (expired.namespace, expired.all)
    };
    assert_eq!((count(&one).await, count(&all).await), ((3, 6), (0, 6)));
    assert_eq!(one.purge_namespace(2).await.unwrap(), 2);
    assert_eq!(one.purge_namespace(100).await.unwrap(), 1);
    assert_eq!((count(&one).await, count(&other).await), ((0, 3), (3, 3)));
    assert_eq!(rows(&all).await, 4);
}
