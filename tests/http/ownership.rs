//! Whose key it is, in memory, so nothing outlives a process; `tests/sql/transactions` and `tests/redis` test the stores that
//! outlive one.

use std::future::ready;

use tower_idempotency::MemoryStore;

use crate::common::ownership::whose_key_it_is;

#[tokio::test]
async fn in_memory() {
    let store = MemoryStore::new();
    whose_key_it_is(|| ready(store.clone())).await;
}
