//~ does not say what counts as the same request
//~ `fingerprint::from_fn(|parts, body| ..)`
use tower_idempotency::{IdempotencyLayer, MemoryStore};

fn main() {
    drop(IdempotencyLayer::new(MemoryStore::new()).fingerprint(|body: &[u8]| body.len()));
}
