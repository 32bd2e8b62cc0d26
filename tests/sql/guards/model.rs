//! What the guards guard.

use std::future::Future;

use tower_idempotency::sql::guard::{Column, DedupTable, RowState, StateMachine, Versioned};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Unpaid,
    Paid,
    Closed,
    Refunded,
}

impl RowState for Order {
    const ALL: &'static [Self] = &[Self::Unpaid, Self::Paid, Self::Closed, Self::Refunded];

    fn as_str(self) -> &'static str {
        match self {
            Self::Unpaid => "unpaid",
            Self::Paid => "paid",
            Self::Closed => "closed",
            Self::Refunded => "refunded",
        }
    }

    fn may_become(self, next: Self) -> bool {
        // That each may become itself is not to count.
        self == next || matches!((self, next), (Self::Unpaid, Self::Paid | Self::Closed) | (Self::Paid, Self::Refunded))
    }
}

pub(crate) const ORDERS: StateMachine<Order> = StateMachine::new("orders", "number", "state");
pub(crate) const ACCOUNTS: Versioned = Versioned::new("accounts", "id", "version");
pub(crate) const PAYMENTS: DedupTable = DedupTable::new("payments", "serial");

pub(crate) const SERIAL: Column = Column::new("serial");
pub(crate) const CENTS: Column = Column::new("cents");
pub(crate) const OWNER: Column = Column::new("owner");
pub(crate) const ORDER: Column = Column::new("order");

/// The words in braces are the database's own.
const SCHEMA: &[&str] = &[
    "DROP TABLE IF EXISTS orders",
    "DROP TABLE IF EXISTS accounts",
    "DROP TABLE IF EXISTS payments",
    "CREATE TABLE orders (number VARCHAR(32) PRIMARY KEY, state {state} NOT NULL, serial VARCHAR(32))",
    "CREATE TABLE accounts (id INT PRIMARY KEY, owner VARCHAR(32), cents BIGINT NOT NULL CHECK (cents >= 0), version INT NOT NULL)",
    "CREATE TABLE payments (serial VARCHAR(32) PRIMARY KEY, cents BIGINT NOT NULL, {order} VARCHAR(32) UNIQUE)",
    "INSERT INTO orders (number, state) VALUES ('A-1', 'unpaid')",
    "INSERT INTO orders (number, state) VALUES ('A-2', 'unpaid')",
    "INSERT INTO accounts (id, owner, cents, version) VALUES (1, 'ann', 1000, 0)",
    "INSERT INTO accounts (id, owner, cents, version) VALUES (2, 'bob', 1000, 0)",
];

/// The schema, in the words of a database.
pub(crate) fn schema(state: &str, quote: &str) -> String {
    SCHEMA.join("; ").replace("{state}", state).replace("{order}", &format!("{quote}order{quote}"))
}

/// Runs so many tasks at once.
pub(crate) async fn all<F>(tasks: usize, task: impl Fn(usize) -> F) -> Vec<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let tasks: Vec<_> = (0..tasks).map(|number| tokio::spawn(task(number))).collect();
    let mut outputs = Vec::new();
    for task in tasks {
        outputs.push(task.await.unwrap());
    }
    outputs
}

/// Numbers that come again with each run of a test.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    /// One of 1 to `most`.
    pub(crate) fn up_to(&mut self, most: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33).cast_signed() % most + 1
    }
}
