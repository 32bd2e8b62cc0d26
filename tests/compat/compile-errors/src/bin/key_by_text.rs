//~ `&str` does not say where a request's key is
//~ `key::header("X-Request-Id")`
use tower_idempotency::{IdempotencyLayer, MemoryStore};

fn main() {
    drop(IdempotencyLayer::new(MemoryStore::new()).key("X-Id"));
}
