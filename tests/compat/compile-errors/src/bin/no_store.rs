//~ `&str` is not a store
//~ `RedisStore::connect(url).await?`
use tower_idempotency::IdempotencyLayer;

fn main() {
    drop(IdempotencyLayer::new("redis://127.0.0.1"));
}
