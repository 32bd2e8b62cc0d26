//~ `MemoryStore` cannot claim in a transaction of a database
//~ `PostgresStore`, `MySqlStore` or `SqliteStore`
use tower_idempotency::{IdempotencyLayer, MemoryStore};

fn main() {
    drop(IdempotencyLayer::transactional(MemoryStore::new()));
}
