//! The memory store keeps the rules of every store.
#![cfg(all(feature = "memory", feature = "testing"))]

use std::{future::ready, sync::Arc, time::Duration};

use tower_idempotency::{
    MemoryStore,
    store::Operator,
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
    suite::run(&|namespace: &str| ready(Arc::new(store.namespace(namespace)) as Arc<dyn Operator>)).await;
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
