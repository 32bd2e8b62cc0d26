//~ `PgConnection` is not a connection of the `sqlx` that `tower-idempotency` uses
//~ write `sqlx = "0.9"` in your Cargo.toml
use sqlx::PgConnection;
use tower_idempotency::sql::guard::DedupTable;

const PAYMENTS: DedupTable = DedupTable::new("payments", "serial");

async fn pay(connection: &mut PgConnection) {
    drop(PAYMENTS.on(connection).insert("P-1").await);
}

fn main() {
    drop(pay);
}
