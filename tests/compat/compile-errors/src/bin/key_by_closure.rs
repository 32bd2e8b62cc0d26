//~ does not say where a request's key is
//~ `key::from_fn(|parts| ..)`
use tower_idempotency::{IdempotencyLayer, MemoryStore};

fn main() {
    drop(IdempotencyLayer::new(MemoryStore::new()).key(|parts: &axum::http::request::Parts| parts.uri.to_string()));
}
