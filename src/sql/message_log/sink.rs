use crate::{sql::driver::SqlDatabase, store::StoreFuture};

use super::{message::IncomingMessage, table::MessageLog};

/// A log without its database, as the layer has it.
pub(crate) trait MessageSink: Send + Sync {
    /// Returns how many bytes of a body are kept.
    fn body_limit(&self) -> usize;

    /// Writes a message.
    fn write<'a>(&'a self, message: &'a IncomingMessage) -> StoreFuture<'a, ()>;

    /// Notes the status of the answer to a message.
    fn answered<'a>(&'a self, id: &'a str, status: u16) -> StoreFuture<'a, bool>;
}

impl<D: SqlDatabase> MessageSink for MessageLog<D> {
    fn body_limit(&self) -> usize {
        self.body_limit
    }

    fn write<'a>(&'a self, message: &'a IncomingMessage) -> StoreFuture<'a, ()> {
        StoreFuture::new(self.write(message))
    }

    fn answered<'a>(&'a self, id: &'a str, status: u16) -> StoreFuture<'a, bool> {
        StoreFuture::new(self.answered(id, status))
    }
}
