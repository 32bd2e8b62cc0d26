//! A layer keeps the request body if it is configured to.

use tower_idempotency::MemoryStore;

use crate::common::kept_request::{a_request_past_the_limit_is_not_kept, the_request_is_kept_where_asked_for};

#[tokio::test]
async fn in_memory() {
    the_request_is_kept_where_asked_for(MemoryStore::new()).await;
    a_request_past_the_limit_is_not_kept(MemoryStore::new()).await;
}
