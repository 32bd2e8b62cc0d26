//~ `PgConnection` is not a connection of the `sqlx` that `tower-idempotency` uses
//~ write `sqlx = "0.9"` in your Cargo.toml
use sqlx::PgConnection;
use tower_idempotency::sql::guard::{RowState, StateMachine};

async fn ship<S: RowState>(orders: StateMachine<S>, shipped: S, connection: &mut PgConnection) {
    drop(orders.on(connection).transition("A-1", shipped).await);
}

fn main() {}
