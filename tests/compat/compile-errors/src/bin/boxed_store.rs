//~ is not a store
//~ `Arc<dyn Store>`
use tower_idempotency::{IdempotencyLayer, MemoryStore, store::Store};

fn main() {
    let store: Box<dyn Store> = Box::new(MemoryStore::new());
    drop(IdempotencyLayer::new(store));
}
