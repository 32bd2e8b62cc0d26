//! The transaction from the `Operation`, for handlers without extractors.

use super::{NoTransaction, Tx};
use crate::{engine::Operation, sql::SqlDatabase};

impl Operation {
    /// Returns the transaction that the layer has opened, in transaction mode. It is taken out of the operation, and
    /// goes back when it is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the layer is in another mode, its store is in another database, the transaction is taken or
    /// has ended, or this is a [duplicate](Self::is_duplicate), which only reads.
    #[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
    pub fn transaction<D: SqlDatabase>(&self) -> Result<Tx<D>, NoTransaction> {
        if self.is_duplicate() {
            return Err(NoTransaction::Duplicate);
        }
        Tx::take(self.slot().ok_or(NoTransaction::NoLayer)?)
    }
}
