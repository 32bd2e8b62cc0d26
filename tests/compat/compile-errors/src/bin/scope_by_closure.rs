//~ does not say whose key it is
//~ `scope::extension(|user: &User| user.id)`
use tower_idempotency::{IdempotencyLayer, MemoryStore};

struct User {
    id: u64,
}

fn main() {
    drop(IdempotencyLayer::new(MemoryStore::new()).scope(|user: &User| user.id));
}
