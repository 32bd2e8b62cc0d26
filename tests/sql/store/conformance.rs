//! The conformance suite.

use std::future::ready;

use tower_idempotency::{sql::SqlStore, testing::suite};

use super::{store, walk};
use crate::database::TestDatabase;

pub(super) async fn the_rules_of_every_store<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    keeps_the_rules(&store).await;
}

pub(super) async fn a_random_walk_agrees_with_the_rules<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    walk::agrees_with_the_rules(|namespace| store.namespace(namespace)).await;
}

pub(super) async fn keeps_the_rules<D: TestDatabase>(store: &SqlStore<D>) {
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}
