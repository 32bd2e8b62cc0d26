//! The traits of stores that keep a record in the transaction of the work.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use super::{Claimed, Granted, Store, StoreFuture};
use bytes::Bytes;

use crate::value::{Claim, RecordKey, Settlement, StoreError, Unseen};

/// A store that can claim in the transaction in which the work is done, so that both are committed or neither is.
///
/// The SQL stores implement it; see [`IdempotencyLayer::transactional`](crate::IdempotencyLayer::transactional).
///
/// # Contract
///
/// - [`enter`](Self::enter) begins a transaction and writes a running record in it, without waiting for a lock. Of any
///   number of concurrent callers at most one gets a transaction; the others receive [`Running`](Claimed::Running) at
///   once.
/// - A committed record is always read first: no caller receives [`Running`](Claimed::Running) for a key whose record
///   is settled, however many ask for it at the same moment.
/// - Nobody else sees the record before [`commit`](Transaction::commit). If the transaction ends in any other way,
///   there is no record and no effect.
/// - [`record_failure`](Self::record_failure) is one statement outside any transaction. It changes no record that is
///   running or settled, and no record of a later attempt.
/// - If a handler commits the record by itself, without an answer, its outcome is unknown once its lease has lapsed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot claim in a transaction of a database",
    label = "not a store in an SQL database",
    note = "`transactional` needs a `PostgresStore`, `MySqlStore` or `SqliteStore` (features `postgres`, `mysql`, `sqlite`), \
            or a `CachedStore` or a `SealedStore` of one; with any other store, write `IdempotencyLayer::new(store)`"
)]
pub trait TransactionalStore: Store {
    /// Claims `key` in a new transaction, if it can be claimed.
    ///
    /// If the future is dropped, the transaction that it has begun is rolled back. The claim's lease bounds how long
    /// the transaction may be idle, if the database can enforce that.
    fn enter<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Entered>;

    /// Resolves once a running claim of `key` may have ended, after `within` at the latest.
    fn left<'a>(&'a self, key: &'a RecordKey, within: Duration) -> StoreFuture<'a, ()>;

    /// Records an attempt whose transaction was rolled back, so that the next request learns how many there were, or
    /// that no further attempt is made.
    ///
    /// A second call with the same arguments changes nothing. If the future is dropped, the attempt may or may not be
    /// recorded.
    fn record_failure<'a>(
        &'a self,
        key: &'a RecordKey,
        claim: &'a Claim,
        failed: &'a FailedAttempt,
    ) -> StoreFuture<'a, ()>;
}

/// An attempt whose transaction was rolled back, for [`TransactionalStore::record_failure`].
#[derive(Clone)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// The grant of its claim: which attempt it was, and who began the operation.
    pub granted: Granted,
    /// The payload that settles the record, so that no other attempt runs. `None` leaves a released record: the next
    /// attempt runs.
    pub payload: Option<Bytes>,
    /// How long the record is kept, from now on.
    pub keep: Duration,
}

impl FailedAttempt {
    /// Creates a failed attempt.
    #[must_use]
    pub fn new(granted: Granted, payload: Option<Bytes>, keep: Duration) -> Self {
        Self { granted, payload, keep }
    }
}

impl fmt::Debug for FailedAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FailedAttempt")
            .field("granted", &self.granted)
            .field("payload", &self.payload.as_ref().map(Unseen))
            .field("keep", &self.keep)
            .finish()
    }
}

/// The outcome of [`TransactionalStore::enter`].
#[non_exhaustive]
pub enum Entered {
    /// The claim was granted, and is written in this transaction.
    Granted(Granted, Box<dyn Transaction>),
    /// There is no transaction, for this reason; it is never [`Claimed::Granted`].
    Refused(Claimed),
}

/// A transaction in which a claim was written. If it is dropped, it is rolled back.
pub trait Transaction: Send {
    /// Returns the slot from which the work takes the transaction.
    fn slot(&self) -> TransactionSlot;

    /// Settles the claim in the transaction and commits it.
    ///
    /// An error means that the database could not be reached, or that it is unknown whether the commit took effect; the
    /// record shows it later.
    fn commit(self: Box<Self>, settlement: Settlement) -> StoreFuture<'static, Committed>;

    /// Rolls the transaction back, including the claim.
    fn roll_back(self: Box<Self>) -> StoreFuture<'static, ()>;
}

/// The outcome of [`Transaction::commit`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Committed {
    /// The effect and the record are committed.
    Done,
    /// Neither is committed: the work has kept the transaction, ended it by itself, or broken it.
    RolledBack(StoreError),
}

/// The slot from which work that runs in a transaction takes it; see `Operation::transaction`.
///
/// Its type is erased: `Tx::take` of an SQL store recognises its own. Clones refer to the same slot.
#[derive(Clone)]
pub struct TransactionSlot(Arc<dyn Any + Send + Sync>);

impl TransactionSlot {
    /// Creates a slot that holds a store's own type of transaction.
    pub fn new(place: Arc<impl Any + Send + Sync>) -> Self {
        Self(place)
    }

    /// Returns what the slot holds, if it is a `T`.
    #[must_use]
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        self.0.clone().downcast().ok()
    }
}

impl fmt::Debug for TransactionSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransactionSlot").finish_non_exhaustive()
    }
}

impl fmt::Debug for Entered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(granted, _) => f.debug_tuple("Granted").field(granted).finish_non_exhaustive(),
            Self::Refused(claimed) => f.debug_tuple("Refused").field(claimed).finish(),
        }
    }
}
