//! The memory store keeps the rules of every store.

use std::{future::ready, sync::Arc, time::Duration};

use tower_idempotency::{
    MemoryStore,
    store::{Claim, Claimed, RecordKey, Store, StoreAdmin},
    testing::{
        FaultyStore, ManualClock,
        suite::{self, Factory},
    },
};

#[tokio::test(start_paused = true)]
async fn in_paused_time() {
    let store = MemoryStore::new();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_real_time_on_many_threads() {
    let store = MemoryStore::new();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(start_paused = true)]
async fn without_its_type() {
    let store = MemoryStore::new();
    suite::run(&|namespace: &str| ready(Arc::new(store.namespace(namespace)) as Arc<dyn StoreAdmin>)).await;
}

#[tokio::test(start_paused = true)]
async fn within_another_store() {
    let store = MemoryStore::new();
    suite::run(&|namespace: &str| ready(FaultyStore::new(store.namespace(namespace)))).await;
}

struct Manual {
    clock: ManualClock,
    store: MemoryStore,
}

impl Factory for Manual {
    type Store = MemoryStore;

    async fn store(&self, namespace: &str) -> MemoryStore {
        self.store.namespace(namespace)
    }

    async fn pass(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn side_by_side(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn with_a_manual_clock() {
    let clock = ManualClock::new();
    let store = MemoryStore::builder().clock(clock.clone()).build();
    suite::run(&Manual { clock, store }).await;
}

#[cfg(feature = "tracing")]
mod dropped {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tower_idempotency::{
        MemoryStore,
        store::{Claim, RecordKey, Release, Settlement, Store},
    };
    use tracing::{Event, Level, Subscriber};
    use tracing_subscriber::{
        Layer,
        layer::{Context, SubscriberExt},
        registry,
    };

    use super::Duration;

    #[derive(Clone, Default)]
    struct Warnings(Arc<AtomicUsize>);

    impl<S: Subscriber> Layer<S> for Warnings {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            if *event.metadata().level() == Level::WARN {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
    }

    /// How many warnings come when a store is dropped that some claims were made in, which ended like this.
    async fn warnings(end: impl AsyncFn(&MemoryStore, &RecordKey, &Claim)) -> usize {
        let store = MemoryStore::new();
        for number in 0..3 {
            let key = RecordKey::new("/orders", None, &number.to_string()).unwrap();
            let claim = Claim::new(Duration::from_secs(30), Duration::from_secs(300));
            store.claim(&key, &claim).await.unwrap();
            end(&store, &key, &claim).await;
        }
        let warnings = Warnings::default();
        tracing::subscriber::with_default(registry().with(warnings.clone()), || {
            drop(store.clone());
            assert_eq!(warnings.0.load(Ordering::SeqCst), 0, "another handle is left");
            drop(store);
        });
        warnings.0.load(Ordering::SeqCst)
    }

    #[tokio::test]
    async fn one_warning_tells_of_operations_that_ran() {
        assert_eq!(warnings(async |_, _, _| {}).await, 1);
    }

    #[tokio::test]
    async fn nothing_is_said_of_what_has_ended() {
        let day = Duration::from_secs(86_400);
        let settled = async |store: &MemoryStore, key: &RecordKey, claim: &Claim| {
            store.settle(key, &Settlement::new(claim.claimant, None, day)).await.unwrap();
        };
        let released = async |store: &MemoryStore, key: &RecordKey, claim: &Claim| {
            store.release(key, &Release::new(claim.claimant, day)).await.unwrap();
        };
        assert_eq!((warnings(settled).await, warnings(released).await), (0, 0));
    }
}

/// A note is a part of what the server has read from the connection; the rest of it is not kept.
#[tokio::test]
async fn a_note_keeps_no_more_than_itself() {
    let store = MemoryStore::new();
    let read = bytes::Bytes::from(vec![0; 1 << 20]);
    let mut claim = Claim::new(Duration::from_secs(30), Duration::from_secs(60));
    claim.note = read.slice(..10);
    let key = RecordKey::new("/orders", None, "k").unwrap();
    assert!(matches!(store.claim(&key, &claim).await.unwrap(), Claimed::Granted(_)));
    drop(claim);
    assert!(read.is_unique(), "somebody keeps the whole of it");
    assert_eq!(store.inspect(&key).await.unwrap().unwrap().note, read.slice(..10));
}
