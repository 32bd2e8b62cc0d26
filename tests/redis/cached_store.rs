//! Memory in front of Redis, and Redis in front of a database.

use std::{
    future::ready,
    sync::Arc,
    time::{Duration, Instant},
};

use tower_idempotency::{
    MemoryStore, RedisStore,
    store::{CachedStore, Claimed, Origin, Settlement, State, Store, StoreAdmin},
    testing::suite,
};

use crate::{MINUTE, claim, granted, key, replays, server::Server, settlement, torn_reads::Slow};

#[tokio::test(flavor = "multi_thread")]
async fn memory_in_front_of_redis() {
    let server = Server::start(&[]);
    let (front, behind) = (MemoryStore::new(), server.store().await);
    suite::run(&|namespace: &str| ready(CachedStore::new(front.namespace(namespace), behind.namespace(namespace))))
        .await;
}

/// As a database would be, but for the time that it takes.
#[tokio::test(flavor = "multi_thread")]
async fn redis_in_front_of_another_store() {
    let server = Server::start(&[]);
    let (front, behind) = (server.store().await, MemoryStore::new());
    let within = |namespace: &str| CachedStore::new(front.namespace(namespace), behind.namespace(namespace));
    suite::run(&|namespace: &str| ready(Arc::new(within(namespace)) as Arc<dyn StoreAdmin>)).await;
}

#[cfg(feature = "sqlite")]
mod before_sqlite {
    use tower_idempotency::{
        SqliteStore,
        store::{Committed, Entered, RecordKey, TransactionalStore},
    };

    use super::*;

    async fn sqlite(server: &Server) -> SqliteStore {
        let url = format!("sqlite://{}", server.folder().join("records.db").display());
        let store = SqliteStore::connect(&url).await.unwrap();
        store.migrate().await.unwrap();
        store
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn keeps_the_rules() {
        let server = Server::start(&[]);
        let (front, behind) = (server.store().await, sqlite(&server).await);
        suite::run(&|namespace: &str| ready(CachedStore::new(front.namespace(namespace), behind.namespace(namespace))))
            .await;
    }

    #[tokio::test]
    async fn takes_duplicates_of_transactions() {
        let server = Server::start(&[]);
        let front = server.store().await;
        let store = CachedStore::new(front.clone(), sqlite(&server).await);
        let first = claim();
        let Entered::Granted(_, transaction) = store.enter(&key("one"), &first).await.unwrap() else {
            panic!("a free key is granted");
        };
        assert!(matches!(transaction.commit(settlement(&first)).await.unwrap(), Committed::Done));
        for _ in 0..2 {
            refused(&store, &key("one")).await;
            assert_eq!(front.stats().await.unwrap().settled, 1);
        }
    }

    async fn refused(store: &impl TransactionalStore, key: &RecordKey) {
        match store.enter(key, &claim()).await.unwrap() {
            Entered::Refused(claimed) => assert_eq!(claimed, Claimed::Settled(Some("kept".into()), Origin::NONE)),
            entered => panic!("{entered:?}"),
        }
    }
}

/// The process stands still after each of the commands by which Redis becomes the cache of a record, so that no timer of its
/// sees it: Redis, by its own clock, takes no copy that would outlive the record.
#[tokio::test]
async fn a_copy_that_a_stall_has_made_old_is_none() {
    let server = Server::start(&[]);
    let (life, stall, limit) = (Duration::from_secs(2), Duration::from_millis(1500), Duration::from_millis(50));
    for after in 1..6 {
        let slow = Slow::to(&server).await;
        let front = RedisStore::builder().namespace(&after.to_string()).with_connection(slow.clone()).await.unwrap();
        let behind = MemoryStore::new();
        let store = CachedStore::new(front, behind.clone()).cache_timeout(limit);
        let first = claim();
        granted(&behind, &key("a"), &first).await;
        let began = Instant::now();
        behind.settle(&key("a"), &Settlement::new(first.claimant, Some("first".into()), life)).await.unwrap();
        slow.after(after, async move { std::thread::sleep(stall) });
        assert_eq!(
            store.claim(&key("a"), &claim()).await.unwrap(),
            Claimed::Settled(Some("first".into()), Origin::NONE)
        );
        // On another connection, on which nobody stands still.
        let seen = server.store().await.namespace(&after.to_string());
        if let Some(copy) = seen.inspect(&key("a")).await.unwrap().filter(|copy| copy.state == State::Settled) {
            assert!(began.elapsed() + copy.expires_in <= life, "after {after} commands: {copy:?}");
        }
        tokio::time::sleep(life.saturating_sub(began.elapsed()) + limit).await;
        let second = claim();
        granted(&behind, &key("a"), &second).await;
        behind.settle(&key("a"), &settlement(&second)).await.unwrap();
        replays(&store, &key("a")).await;
    }
}

/// Dead, standing still, and back.
#[tokio::test(flavor = "multi_thread")]
async fn a_front_that_is_away() {
    let mut server = Server::start(&[]);
    let front = RedisStore::builder().connect(&server.url()).await.unwrap();
    let store = CachedStore::new(front.clone(), MemoryStore::new());
    for step in 0..3 {
        match step {
            0 => server.pause(),
            1 => {
                server.resume();
                server.kill();
            }
            _ => server.start_again(),
        }
        let began = Instant::now();
        for n in 0..200 {
            let claim = claim();
            let name = key(&format!("{step} {n}"));
            granted(&store, &name, &claim).await;
            store.settle(&name, &settlement(&claim)).await.unwrap();
            replays(&store, &name).await;
        }
        // One wait for the cache a second, however many ask: far less than one for each of four hundred.
        assert!(began.elapsed() < Duration::from_secs(10), "step {step}");
    }
    let began = Instant::now();
    while front.stats().await.map_or(0, |stats| stats.settled) == 0 {
        replays(&store, &key("2 1")).await;
        assert!(began.elapsed() < MINUTE, "the front does not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
