//! Messages that are sent if and only if a transaction was committed: first the database, then the broker.
//!
//! [`Outbox::stage`] inserts a message into a table in the transaction of the change that it reports. A [`Relay`] reads
//! the table and hands each message to a [`Sender`], at least once, and in order for each key.
//!
//! The guide is [`guide::outbox`](crate::guide::outbox).

mod flight;
mod relay;
mod sender;
mod sending;
mod topics;

#[doc(no_inline)]
pub use crate::store::{Message, Outbox, OutboxStats, StagedMessage};

pub use self::{
    relay::{Relay, RelayStats},
    sender::Sender,
};
