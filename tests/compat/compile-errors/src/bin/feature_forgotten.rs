//~ no `RedisStore` in the root
//~ the item is gated behind the `redis` feature
use tower_idempotency::RedisStore;

fn main() {
    drop(RedisStore::connect("redis://127.0.0.1"));
}
