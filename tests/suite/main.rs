//! The conformance suite, checked itself: a correct store passes, and every rule is broken by a store that fails on it.
#![cfg(feature = "testing")]

mod model;

use std::{future::ready, sync::Arc, time::Duration};

use tower_idempotency::{
    store::Operator,
    testing::{
        FaultyStore, ManualClock,
        suite::{self, Factory},
    },
};

use self::model::Model;

#[tokio::test(start_paused = true)]
async fn a_correct_store_passes() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correct_store_passes_in_real_time_on_many_threads() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

struct Manual(ManualClock, Model);

impl Factory for Manual {
    type Store = Model;

    async fn store(&self, namespace: &str) -> Model {
        self.1.namespace(namespace)
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time);
    }

    fn side_by_side(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_correct_store_passes_with_a_manual_clock() {
    let clock = ManualClock::new();
    let now = clock.clone();
    suite::run(&Manual(clock, Model::with_clock(move || now.now()))).await;
}

#[tokio::test(start_paused = true)]
async fn a_store_without_its_type_passes() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(Arc::new(store.namespace(namespace)) as Arc<dyn Operator>)).await;
}

#[tokio::test(start_paused = true)]
async fn a_faulty_store_without_faults_passes() {
    let store = Model::new();
    suite::run(&|namespace: &str| ready(FaultyStore::new(store.namespace(namespace)))).await;
}
