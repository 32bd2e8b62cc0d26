//~ `PgConnection` is not a connection of the `sqlx` that `tower-idempotency` uses
//~ write `sqlx = "0.9"` in your Cargo.toml
use sqlx::PgConnection;
use tower_idempotency::sql::guard::Versioned;

fn edit(pages: Versioned, connection: &mut PgConnection) {
    drop(pages.on(connection));
}

fn main() {
    drop(edit);
}
