//! Sealed records in a database.

use std::future::ready;

use tower_idempotency::{
    store::{SealedStore, SealingKeys},
    testing::suite,
};

use super::store;
use crate::database::TestDatabase;

pub(super) async fn the_rules_of_every_store<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    let keys = SealingKeys::new([1; 32]).unwrap();
    suite::run(&|namespace: &str| ready(SealedStore::new(store.namespace(namespace), keys.clone()))).await;
}
