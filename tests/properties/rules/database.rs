//! A database in memory.

use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tower_idempotency::SqliteStore;

use super::probe::block_on;

thread_local! {
    static STORE: SqliteStore = block_on(async {
        let memory = SqliteConnectOptions::new().in_memory(true);
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(memory).await.expect("a database");
        let store = SqliteStore::builder().without_purge().pool(pool);
        store.migrate().await.expect("a table");
        store
    });
}

/// One for each thread.
pub fn with<T>(work: impl FnOnce(&SqliteStore) -> T) -> T {
    STORE.with(work)
}
