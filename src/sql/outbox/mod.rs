//! Messages that are sent if and only if a transaction was committed: first the database, then the broker.
//!
//! [`Outbox::stage`] inserts a message into a table in the transaction of the change that it reports. A [`Relay`] reads
//! the table and hands each message to a [`Sender`], at least once, and in order for each key.
//!
//! The guide is [`guide::outbox`](crate::guide::outbox).

mod batch;
mod flight;
mod inspect;
mod message;
mod relay;
mod sender;
mod sending;
mod statements;
mod table;
mod topics;

pub(super) use self::statements::{Texts, outbox_texts};
pub use self::{
    inspect::OutboxStats,
    message::{Message, StagedMessage},
    relay::{Relay, RelayStats},
    sender::Sender,
    table::Outbox,
};
