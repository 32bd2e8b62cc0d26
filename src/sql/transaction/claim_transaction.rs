//! The connection with the open transaction, and the claim in it.
//!
//! `OpenTransaction` is moved between the slot and the handler's `Tx`; wherever it is dropped, the transaction is rolled back by
//! closing the connection, since the pool would hand out a connection whose transaction is still open. Only a commit or
//! a rollback of the layer's own marks it as ended and gives the connection back.

use std::sync::Arc;

use bytes::Bytes;
use sqlx::Error;

use crate::{
    sql::{
        driver::{ErrorClass, SqlDatabase, Value},
        error::StatementError,
        store::{
            SqlShared,
            retry::fits,
            values::{bytes, time},
        },
    },
    store::{Committed, StoreFuture, Transaction, TransactionSlot},
    value::{Settlement, StoreError, StoreErrorKind},
};

use super::{cell::TransactionCell, open_transaction::OpenTransaction};

/// A claim that was granted in a transaction.
pub(super) struct ClaimTransaction<D: SqlDatabase> {
    shared: Arc<SqlShared<D>>,
    cell: Arc<TransactionCell<D>>,
    id: Vec<u8>,
}

impl<D: SqlDatabase> ClaimTransaction<D> {
    pub(super) fn new(shared: Arc<SqlShared<D>>, open: OpenTransaction<D>, id: Vec<u8>) -> Self {
        Self { shared, cell: Arc::new(TransactionCell::new(open)), id }
    }

    /// Settles the claim. The record was inserted first and is updated last: if it does not exist any more, neither
    /// does what was done in between.
    async fn settle(&self, mut settlement: Settlement) -> Result<Committed, StoreError> {
        let Some(mut open) = self.cell.end() else {
            return Ok(rolled_back::<D>("the handler keeps the transaction beyond its answer"));
        };
        if !open.has_no_savepoint() {
            return Ok(rolled_back::<D>("the handler has left a savepoint open"));
        }
        // An answer that the database does not accept leaves a tombstone, as in lease mode.
        let length = settlement.payload.as_ref().map_or(0, Bytes::len) as u64;
        match fits::<D>(open.connection_mut(), length).await {
            Ok(true) => {}
            Ok(false) => settlement.payload = None,
            Err(error) => return failed::<D>(error),
        }
        let claimant = settlement.claimant.to_bytes();
        let payload = Value::Bytes(settlement.payload.as_deref());
        let values = [payload, time(settlement.retention), bytes(&self.id), bytes(&claimant)];
        match D::ask(open.connection_mut(), &self.shared.statements.settle, &values).await {
            Ok(answer) if answer.count == 1 => {}
            Ok(_) => return Ok(rolled_back::<D>("the transaction was ended or undone before the handler answered")),
            Err(error) => return failed::<D>(error),
        }
        match open.commit().await {
            Ok(()) => {
                self.shared.recent_keys.add(&self.id);
                Ok(Committed::Done)
            }
            Err(error) => failed::<D>(error),
        }
    }
}

/// Returns the outcome of a transaction that must not be committed.
fn rolled_back<D: SqlDatabase>(why: &str) -> Committed {
    let error = StoreError::new(StoreErrorKind::Other, format!("{}: {why}", D::NAME));
    Committed::RolledBack(error.without_effect())
}

/// Distinguishes a transaction that the handler has broken from a failure of the database.
fn failed<D: SqlDatabase>(error: Error) -> Result<Committed, StoreError> {
    let handlers = matches!(&error, Error::Database(error)
        if matches!(D::refusal(&**error), ErrorClass::Rejected(StoreErrorKind::Other, _)));
    let error = StatementError::Failed(error).into_error::<D>(false);
    if handlers { Ok(Committed::RolledBack(error)) } else { Err(error) }
}

impl<D: SqlDatabase> Transaction for ClaimTransaction<D> {
    fn slot(&self) -> TransactionSlot {
        TransactionSlot::new(Arc::clone(&self.cell))
    }

    fn commit(self: Box<Self>, settlement: Settlement) -> StoreFuture<'static, Committed> {
        StoreFuture::new(async move { self.settle(settlement).await })
    }

    fn roll_back(self: Box<Self>) -> StoreFuture<'static, ()> {
        StoreFuture::new(async move {
            let Some(mut open) = self.cell.end() else { return Ok(()) };
            open.roll_back().await.map_err(|error| StatementError::Failed(error).into_error::<D>(false))
        })
    }
}

impl<D: SqlDatabase> Drop for ClaimTransaction<D> {
    fn drop(&mut self) {
        drop(self.cell.end());
    }
}
