//~ `&str` does not say whose key it is
//~ `scope::header("X-Tenant")`
use tower_idempotency::{IdempotencyLayer, MemoryStore};

fn main() {
    drop(IdempotencyLayer::new(MemoryStore::new()).scope("X-Tenant"));
}
