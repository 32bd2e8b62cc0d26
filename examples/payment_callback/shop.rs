//! What the shop keeps, and how it is guarded.

use serde::{Deserialize, Serialize};
use tower_idempotency::sql::guard::{Column, DedupTable, RowState, StateMachine, Versioned};

/// The statuses in a notice about an order, and the states that it goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Unpaid,
    Paid,
    Refunded,
    Closed,
}

impl RowState for Status {
    const ALL: &'static [Self] = &[Self::Unpaid, Self::Paid, Self::Refunded, Self::Closed];

    fn as_str(self) -> &'static str {
        match self {
            Self::Unpaid => "unpaid",
            Self::Paid => "paid",
            Self::Refunded => "refunded",
            Self::Closed => "closed",
        }
    }

    fn may_become(self, next: Self) -> bool {
        matches!((self, next), (Self::Unpaid, Self::Paid | Self::Closed) | (Self::Paid, Self::Refunded))
    }
}

pub(crate) const ORDERS: StateMachine<Status> = StateMachine::new("payment_callback_orders", "number", "state");
pub(crate) const ACCOUNTS: Versioned = Versioned::new("payment_callback_accounts", "name", "version");
/// What has moved money, by the platform's own number, with the raw message.
pub(crate) const ENTRIES: DedupTable = DedupTable::new("payment_callback_entries", "serial");

pub(crate) const BALANCE: Column = Column::new("cents");
pub(crate) const ACCOUNT: Column = Column::new("account");
pub(crate) const CENTS: Column = Column::new("cents");
pub(crate) const MESSAGE: Column = Column::new("message");

/// The same for all three databases.
pub(crate) const SCHEMA: &[&str] = &[
    "DROP TABLE IF EXISTS payment_callback_orders",
    "DROP TABLE IF EXISTS payment_callback_accounts",
    "DROP TABLE IF EXISTS payment_callback_entries",
    "DROP TABLE IF EXISTS payment_callback_messages",
    "DROP TABLE IF EXISTS payment_callback_records",
    "CREATE TABLE payment_callback_accounts (name VARCHAR(32) PRIMARY KEY, cents BIGINT NOT NULL, \
     version BIGINT NOT NULL)",
    "CREATE TABLE payment_callback_orders (number VARCHAR(32) PRIMARY KEY, account VARCHAR(32) NOT NULL, \
     cents BIGINT NOT NULL, state VARCHAR(16) NOT NULL)",
    "CREATE TABLE payment_callback_entries (serial VARCHAR(32) PRIMARY KEY, account VARCHAR(32) NOT NULL, \
     cents BIGINT NOT NULL, message TEXT NOT NULL)",
];

/// A notification of the platform's.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(crate) struct Notice {
    /// The merchant's own number.
    pub(crate) order: String,
    pub(crate) status: Status,
    /// Of the order.
    pub(crate) cents: i64,
    /// The platform's number of the notice.
    pub(crate) serial: String,
    /// Another one with each delivery.
    pub(crate) sent: u64,
}

impl Notice {
    /// What the account gains.
    pub(crate) fn gain(&self) -> i64 {
        match self.status {
            Status::Paid => self.cents,
            Status::Refunded => -self.cents,
            Status::Unpaid | Status::Closed => 0,
        }
    }
}
