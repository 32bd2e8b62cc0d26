//! Messages that are sent if and only if a transaction was committed: first the database, then the broker.
//!
//! [`Outbox::stage`] puts a message into a table in the transaction of what it tells of. A [`Relay`] takes what is
//! there and hands it to a [`Sender`], at least once, and in order for each key.
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
