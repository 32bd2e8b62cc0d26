//! The transaction while the handler has not taken it.

use std::{
    mem,
    sync::{Mutex, PoisonError},
};

use crate::sql::driver::SqlDatabase;

use super::{NoTransaction, open_transaction::OpenTransaction};

/// Holds a transaction while nobody has taken it.
pub(super) struct TransactionCell<D: SqlDatabase>(Mutex<CellState<D>>);

/// Where the transaction is.
enum CellState<D: SqlDatabase> {
    /// Nobody has taken it.
    Available(OpenTransaction<D>),
    Taken,
    Ended,
}

impl<D: SqlDatabase> TransactionCell<D> {
    pub(super) fn new(open: OpenTransaction<D>) -> Self {
        Self(Mutex::new(CellState::Available(open)))
    }

    /// Ends the use of the transaction, and returns it if nobody has taken it.
    pub(super) fn end(&self) -> Option<OpenTransaction<D>> {
        match self.replace(CellState::Ended) {
            CellState::Available(open) => Some(open),
            CellState::Taken | CellState::Ended => None,
        }
    }

    pub(super) fn take(&self) -> Result<OpenTransaction<D>, NoTransaction> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *state, CellState::Taken) {
            CellState::Available(open) => Ok(open),
            CellState::Taken => Err(NoTransaction::Taken),
            CellState::Ended => {
                *state = CellState::Ended;
                Err(NoTransaction::Ended)
            }
        }
    }

    /// Puts the transaction back. If its use has ended meanwhile, it is rolled back.
    pub(super) fn give_back(&self, open: OpenTransaction<D>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, CellState::Taken) {
            *state = CellState::Available(open);
            return;
        }
        drop(state);
        drop(open);
    }

    fn replace(&self, by: CellState<D>) -> CellState<D> {
        mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), by)
    }
}
