//! The transaction in the hands of the handler.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
};

use crate::{sql::driver::SqlDatabase, store::TransactionSlot};

use super::{NoTransaction, cell::TransactionCell, open_transaction::OpenTransaction};

/// The transaction that the layer has opened, taken by the handler.
///
/// What is done in it is committed together with the record of the request, after the handler has answered, or not at
/// all. With the feature `axum` it is an extractor; otherwise take it from the
/// [`Operation`](crate::Operation::transaction). It dereferences to the connection of `sqlx`, on which queries are
/// executed:
///
/// ```
/// # #[cfg(all(feature = "axum", feature = "sqlite"))] {
/// use axum::http::StatusCode;
/// use sqlx::Sqlite;
/// use tower_idempotency::sql::Tx;
///
/// async fn transfer(mut tx: Tx<Sqlite>) -> Result<StatusCode, StatusCode> {
///     sqlx::query("INSERT INTO transfers (amount) VALUES (?)")
///         .bind(100)
///         .execute(&mut *tx)
///         .await
///         // Not a success: everything is rolled back, and the next try runs.
///         .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
///     Ok(StatusCode::CREATED)
/// }
/// # }
/// ```
///
/// # What not to do with it
///
/// - Keep it beyond the answer, in a task or in a streaming body: the answer becomes a 500, and everything is rolled
///   back.
/// - End it by hand. After a `ROLLBACK` the answer is a 500. A `COMMIT` is not noticed: if the process dies before the
///   record has its answer, the outcome of the request is unknown, and duplicates receive 409 `outcome-unknown`.
/// - Swallow an error of the database and answer with a success. On PostgreSQL the transaction is broken by then, and
///   the answer becomes a 500. MariaDB and SQLite undo only the statement, or on a deadlock the whole transaction, and
///   then the answer becomes a 500 too. For statements that may fail, use a savepoint (`tx.begin()` of
///   `sqlx::Connection`).
///
/// If it is dropped, it returns to its slot, and can be taken again.
pub struct Tx<D: SqlDatabase> {
    /// `Some` until it is dropped.
    open: Option<OpenTransaction<D>>,
    cell: Arc<TransactionCell<D>>,
}

impl<D: SqlDatabase> Tx<D> {
    /// Takes the transaction out of its slot.
    ///
    /// # Errors
    ///
    /// Returns an error if the transaction belongs to another database, is taken already, or has ended.
    pub fn take(slot: &TransactionSlot) -> Result<Self, NoTransaction> {
        let Some(cell) = slot.get::<TransactionCell<D>>() else { return Err(NoTransaction::OtherDatabase) };
        let open = cell.take()?;
        Ok(Self { open: Some(open), cell })
    }
}

impl<D: SqlDatabase> Deref for Tx<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        match &self.open {
            Some(open) => open.connection(),
            None => unreachable!("a transaction is given back when it is dropped"),
        }
    }
}

impl<D: SqlDatabase> DerefMut for Tx<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        match &mut self.open {
            Some(open) => open.connection_mut(),
            None => unreachable!("a transaction is given back when it is dropped"),
        }
    }
}

impl<D: SqlDatabase> Drop for Tx<D> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            self.cell.give_back(open);
        }
    }
}

impl<D: SqlDatabase> fmt::Debug for Tx<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("database", &D::NAME).finish_non_exhaustive()
    }
}
