use std::{any::Any, fmt, sync::Arc, time::Duration};

use super::{Claimed, Granted, Store, StoreFuture};
use bytes::Bytes;

use crate::value::{Claim, RecordKey, Settlement, StoreError, Unseen};

/// A store that can claim in a transaction in which the work is done too, so that both are kept or neither is.
///
/// The SQL stores are such; see [`IdempotencyLayer::transactional`](crate::IdempotencyLayer::transactional).
///
/// # Contract
///
/// - [`enter`](Self::enter) begins a transaction and writes a running record in it, without waiting for a lock. Of any
///   number of racers one at most gets a transaction; the others hear at once that it runs.
/// - What others can see is answered from: nobody hears that a key runs whose record is settled, however many ask for it
///   at the same moment.
/// - Nobody else sees the record before [`commit`](Transaction::commit). If the transaction ends otherwise, by
///   whatever way, there is no record and no effect.
/// - [`record_failure`](Self::record_failure) is one statement outside any transaction. It changes nothing that runs or is
///   settled, and nothing that says of a later attempt.
/// - A record that is committed by hand and has no answer is one whose outcome is unknown once its lease is over.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot claim in a transaction of a database",
    label = "not a store in an SQL database",
    note = "`transactional` needs a `PostgresStore`, `MySqlStore` or `SqliteStore` (features `postgres`, `mysql`, `sqlite`), \
            or a `CachedStore` of one; with any other store, write `IdempotencyLayer::new(store)`"
)]
pub trait TransactionalStore: Store {
    /// Claims `key` in a new transaction, if it can be claimed.
    ///
    /// Dropped half-way, what was begun is rolled back. The claim's lease bounds how long the transaction may be idle,
    /// if the database can see to that.
    fn enter<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Entered>;

    /// Resolves when a claim of `key` that runs may have ended, after `within` at the latest.
    fn left<'a>(&'a self, key: &'a RecordKey, within: Duration) -> StoreFuture<'a, ()>;

    /// Records an attempt whose transaction was rolled back, so that the next one is told how many there were, or that
    /// there is none.
    ///
    /// Done twice, it comes to the same. Dropped half-way, the attempt may or may not be recorded.
    fn record_failure<'a>(
        &'a self,
        key: &'a RecordKey,
        claim: &'a Claim,
        failed: &'a FailedAttempt,
    ) -> StoreFuture<'a, ()>;
}

/// What [`TransactionalStore::record_failure`] records of an attempt whose transaction was rolled back.
#[derive(Clone)]
#[non_exhaustive]
pub struct FailedAttempt {
    /// What its claim was granted with: which attempt it was, and who began the operation.
    pub granted: Granted,
    /// The record is settled with this, and no other attempt runs. `None` leaves a released record: the next attempt runs.
    pub payload: Option<Bytes>,
    /// How long the record is kept from now on.
    pub keep: Duration,
}

impl FailedAttempt {
    /// An attempt that failed.
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
    /// The claim is granted, and written in this transaction.
    Granted(Granted, Box<dyn Transaction>),
    /// There is no transaction, and this is why; never [`Claimed::Granted`].
    Refused(Claimed),
}

/// A transaction that a claim was written in. Dropped, it is rolled back.
pub trait Transaction: Send {
    /// Where the work finds it.
    fn slot(&self) -> TransactionSlot;

    /// Settles the claim in the transaction and commits it.
    ///
    /// An error means that it cannot be known whether the commit took effect, or that the database was not to be
    /// reached; whatever holds, the record tells it later.
    fn commit(self: Box<Self>, settlement: Settlement) -> StoreFuture<'static, Committed>;

    /// Rolls it back, the claim too.
    fn roll_back(self: Box<Self>) -> StoreFuture<'static, ()>;
}

/// The outcome of [`Transaction::commit`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Committed {
    /// The effect and the record are there.
    Done,
    /// Neither is: the work has kept the transaction, ended it by itself, or broken it.
    RolledBack(StoreError),
}

/// Where work that runs in a transaction takes it from; see `Operation::transaction`.
///
/// It is handed over as what it is: `Tx::take` of an SQL store knows it again. Clones are the same place.
#[derive(Clone)]
pub struct TransactionSlot(Arc<dyn Any + Send + Sync>);

impl TransactionSlot {
    /// A place that holds a store's own idea of a transaction.
    pub fn new(place: Arc<impl Any + Send + Sync>) -> Self {
        Self(place)
    }

    /// What it holds, if it is a `T`.
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
