//! Messages that are sent if and only if a transaction was committed: first the database, then the broker.
//!
//! [`Outbox::stage`] inserts a message into a table in the transaction of the change that it reports. A [`Relay`] reads
//! the table and hands each message to a [`Sender`], at least once, and in order for each key.
//!
//! The guide is [`guide::outbox`](crate::guide::outbox).

// For maintainers, in reading order:
//
// - `message`, `table`: what is staged, and how. `statements`: the texts, from the `.sql` files of each database.
// - `relay`: the settings. `run`: the loop. `batch` leases messages, `sending` and `flight` send them, `topics` keeps one
//   destination from taking the whole relay. `sender` is the application's side.
// - `inspect`: statistics, messages that stay, discarding, purging.
//
// A message is leased before it is sent and marked afterwards, each by a statement that compares the lease. No
// transaction is open while a message is sent.

mod batch;
mod flight;
mod inspect;
mod message;
mod relay;
mod relay_stats;
mod run;
mod sender;
mod sending;
mod statements;
mod table;
mod topics;

pub(super) use self::statements::{OutboxTexts, outbox_texts};
pub use self::{
    inspect::OutboxStats,
    message::{Message, StagedMessage},
    relay::Relay,
    relay_stats::RelayStats,
    sender::Sender,
    table::Outbox,
};
