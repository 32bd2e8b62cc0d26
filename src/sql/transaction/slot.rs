//! The transaction in the hands of the handler (`Tx`), and its place while nobody has taken it (`Place`).

use std::{
    error::Error,
    fmt, mem,
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};

use crate::{sql::driver::SqlDatabase, store::TransactionSlot};

use super::open::Live;

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
    live: Option<Live<D>>,
    place: Arc<Place<D>>,
}

impl<D: SqlDatabase> Tx<D> {
    /// Takes the transaction out of its slot.
    ///
    /// # Errors
    ///
    /// Returns an error if the transaction belongs to another database, is taken already, or has ended.
    pub fn take(slot: &TransactionSlot) -> Result<Self, NoTransaction> {
        let Some(place) = slot.get::<Place<D>>() else { return Err(NoTransaction::OtherDatabase) };
        let live = place.take()?;
        Ok(Self { live: Some(live), place })
    }
}

impl<D: SqlDatabase> Deref for Tx<D> {
    type Target = D::Connection;

    fn deref(&self) -> &D::Connection {
        match &self.live {
            Some(live) => live.connection(),
            None => unreachable!("a transaction is given back when it is dropped"),
        }
    }
}

impl<D: SqlDatabase> DerefMut for Tx<D> {
    fn deref_mut(&mut self) -> &mut D::Connection {
        match &mut self.live {
            Some(live) => live.connection_mut(),
            None => unreachable!("a transaction is given back when it is dropped"),
        }
    }
}

impl<D: SqlDatabase> Drop for Tx<D> {
    fn drop(&mut self) {
        if let Some(live) = self.live.take() {
            self.place.give_back(live);
        }
    }
}

impl<D: SqlDatabase> fmt::Debug for Tx<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").field("database", &D::NAME).finish_non_exhaustive()
    }
}

/// The reason why there is no transaction to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoTransaction {
    /// The request did not pass a layer in transaction mode, or was let through unprotected.
    NoLayer,
    /// The layer's store is in a database of another kind.
    OtherDatabase,
    /// The transaction is taken: by another extractor of this handler, or by code that the handler has passed it to.
    Taken,
    /// The handler has answered, and the transaction has ended.
    Ended,
    /// The request is a duplicate that [passes through](crate::OnDuplicate::PassThrough) and may only read.
    Duplicate,
}

impl fmt::Display for NoTransaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoLayer => {
                "no transaction: this request has not come through `.layer(IdempotencyLayer::transactional(..))`, or \
                 was let through unprotected"
            }
            Self::OtherDatabase => "the transaction is one of another database than the handler asks for",
            Self::Taken => "the transaction is taken already",
            Self::Ended => "the transaction has ended with the handler's answer",
            Self::Duplicate => {
                "no transaction: this request is a duplicate that passes through, and nothing is recorded for it. Ask \
                 `Operation::is_duplicate` before `Operation::transaction`, in place of the extractor `Tx`"
            }
        })
    }
}

impl Error for NoTransaction {}

/// Holds a transaction while nobody has taken it.
pub(super) struct Place<D: SqlDatabase>(Mutex<State<D>>);

/// Where the transaction is.
enum State<D: SqlDatabase> {
    /// Nobody has taken it.
    There(Live<D>),
    Taken,
    Ended,
}

impl<D: SqlDatabase> Place<D> {
    pub(super) fn new(live: Live<D>) -> Self {
        Self(Mutex::new(State::There(live)))
    }

    /// Ends the use of the transaction, and returns it if nobody has taken it.
    pub(super) fn end(&self) -> Option<Live<D>> {
        match self.replace(State::Ended) {
            State::There(live) => Some(live),
            State::Taken | State::Ended => None,
        }
    }

    fn take(&self) -> Result<Live<D>, NoTransaction> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *state, State::Taken) {
            State::There(live) => Ok(live),
            State::Taken => Err(NoTransaction::Taken),
            State::Ended => {
                *state = State::Ended;
                Err(NoTransaction::Ended)
            }
        }
    }

    /// Puts the transaction back. If its use has ended meanwhile, it is rolled back.
    fn give_back(&self, live: Live<D>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Taken) {
            *state = State::There(live);
            return;
        }
        drop(state);
        drop(live);
    }

    fn replace(&self, by: State<D>) -> State<D> {
        mem::replace(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), by)
    }
}
