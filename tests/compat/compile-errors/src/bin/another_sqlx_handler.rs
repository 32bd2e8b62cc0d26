//~ `Postgres` is not a database of the `sqlx` that `tower-idempotency` uses
//~ write `sqlx = "0.9"` in your Cargo.toml
use sqlx::Postgres;
use tower_idempotency::sql::Tx;

async fn transfer(_: Tx<Postgres>) {}

fn main() {
    drop(transfer);
}
