//! The messages that came in, for audits and reconciliation: also those that were refused, the duplicates, and those
//! whose transaction was rolled back.
//!
//! [`MessageLog`] is the table, and [`MessageLogLayer`](crate::MessageLogLayer) writes requests to it. The guide is
//! [`guide::message_log`](crate::guide::message_log).

// For maintainers, in reading order:
//
// - `message`: what is written. `logged`: what is read, and which of them. `statements`: the texts, from the `.sql` files
//   of each database.
// - `table`: the log and its settings. `verbs`: writing and reading. `purge`: removing what is old. `sink`: the log as the
//   layer has it.
//
// Each statement is committed by itself, on a connection that no handler has. A message is written by its random id, so
// a statement that is sent twice writes once.

mod logged;
mod message;
mod purge;
mod sink;
mod statements;
mod table;
mod verbs;

pub(crate) use self::sink::MessageSink;
pub(super) use self::statements::{MessageLogTexts, message_log_texts};
pub use self::{
    logged::{LoggedMessage, MessageFilter},
    message::IncomingMessage,
    table::MessageLog,
};
