//~ multiple different versions of crate `sqlx_core`
use sqlx::PgPool;
use tower_idempotency::PostgresStore;

fn store(pool: PgPool) -> PostgresStore {
    PostgresStore::new(pool)
}

fn main() {
    drop(store);
}
