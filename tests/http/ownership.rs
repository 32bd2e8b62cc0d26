//! Whose key it is, in memory; the other stores' tests ask the same.

use std::future::ready;

use tower_idempotency::MemoryStore;

use crate::common::ownership::whose_key_it_is;

#[tokio::test]
async fn in_memory() {
    let store = MemoryStore::new();
    whose_key_it_is(|| ready(store.clone())).await;
}
