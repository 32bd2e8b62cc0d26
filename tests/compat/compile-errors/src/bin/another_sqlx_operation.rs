//~ is not a database of the `sqlx` that `tower-idempotency` uses
//~ write `sqlx = "0.9"` in your Cargo.toml
use sqlx::Postgres;
use tower_idempotency::{Operation, sql::NoTransaction};

fn take(operation: &Operation) -> Result<(), NoTransaction> {
    operation.transaction::<Postgres>().map(drop)
}

fn main() {
    drop(take);
}
