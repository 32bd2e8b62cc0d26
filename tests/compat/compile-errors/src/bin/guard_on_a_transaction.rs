//~ is not a connection of the `sqlx` that `tower-idempotency` uses
//~ are dereferenced: `.on(&mut *tx)`
use tower_idempotency::sql::{SqlDatabase, Tx, guard::DedupTable};

const PAYMENTS: DedupTable = DedupTable::new("payments", "serial");

fn pay<D: SqlDatabase>(tx: &mut Tx<D>) {
    drop(PAYMENTS.on(tx));
}

fn main() {}
