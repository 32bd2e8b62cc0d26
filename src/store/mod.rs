//! Stores: they decide whether a request may run, and keep the answers.
//!
//! [`Store`] is the interface that the layers use; [`StoreAdmin`] is for operators. A store knows nothing of HTTP: it
//! keeps opaque bytes.
//!
//! The rules for an implementation are at [`Store`]. [`RecordSlot`] applies them, `docs/stores.md` is the guide to
//! writing a store, and the feature `testing` has a suite that checks one.

// For maintainers, in reading order:
//
// - this file: the trait `Store`, whose documentation is the contract. `outcome`: what its verbs return. `future`: a
//   future that may be ready already, so that a memory store allocates nothing.
// - `admin`: the operator's trait. `transaction`: the trait of stores that keep the record in the work's own
//   transaction.
// - `slot`: all verbs on one record, for stores that read, change and write back.
// - `memory`, `redis`: the stores of this crate; the SQL stores are in `crate::sql`. `cached`, `sealed`: wrappers of
//   stores. `support`, `shared`: what they have in common.
//
// No trait has a default body: a wrapper that forgets a verb must not compile. Every decision about a record is made
// by `value::rules`.

mod admin;
mod cached;
mod future;
#[cfg(feature = "memory")]
pub(crate) mod memory;
mod outcome;
#[cfg(feature = "redis")]
pub(crate) mod redis;
#[cfg(feature = "sealed")]
mod sealed;
mod shared;
mod slot;
pub(crate) mod support;
mod transaction;

use std::time::Duration;

#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub use self::memory::{Clock, MemoryStoreBuilder};
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub use self::redis::RedisStoreBuilder;
#[cfg(feature = "sealed")]
#[cfg_attr(docsrs, doc(cfg(feature = "sealed")))]
pub use self::sealed::{SealedStore, SealingKeys};
pub use crate::value::{
    Binding, Caller, Claim, Claimant, Entry, Filter, Granted, Issue, Mismatch, Origin, Record, RecordHead, RecordKey,
    Release, Seal, SealingKeyId, SecretNumber, Settlement, State, StoreErrorKind, StoreVerb, StoredRecord,
    TraceContext, Verdict, judge,
};

pub use self::{
    admin::{Cursor, Page, Stats, StoreAdmin},
    cached::CachedStore,
    future::StoreFuture,
    outcome::{Claimed, Finished, Issued, Renewed},
    slot::RecordSlot,
    transaction::{Committed, Entered, FailedAttempt, Transaction, TransactionSlot, TransactionalStore},
};

/// A place where records are kept.
///
/// # Contract
///
/// - Each method is one atomic step: two calls on one key take effect one after the other, wherever they come from.
/// - Time is the store's own clock, in milliseconds. Expiry is checked when a record is read: an expired record counts
///   as absent, whether it has been removed or not.
/// - A record that is issued, running or settled is never dropped before its time. A store that has no room returns
///   [`Full`](self::StoreErrorKind::Full). A store that cannot keep an answer because of its size returns
///   [`TooLarge`](self::StoreErrorKind::TooLarge), and accepts a tombstone in its place.
/// - [`judge`] decides about every claim, and the methods of [`RecordSlot`] are the rules of all others. A store makes no
///   decision of its own.
/// - What was granted, settled or released stays so even if the caller never receives the result: a future that is
///   dropped may have taken effect. Calls may be repeated; the claimant distinguishes a caller's own earlier call from
///   somebody else's.
/// - A copy of a claim that arrives late, after the claim was released, is answered with
///   [`Withdrawn`](Claimed::Withdrawn) as long as the record names its claimant. If another claim was granted in
///   between, or the record is gone (expired, forgotten, or undone), the copy is treated as a new claim and may be
///   granted, though nobody runs it: the key is then held for a lease, and if it is to run at most once, its outcome is
///   unknown from then on. So nothing between a store and its server may keep copies of a claim and send them later.
/// - Keys of two namespaces never collide.
///
/// The methods have no default bodies on purpose: a wrapper that forgets one must not compile.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store",
    label = "not a store",
    note = "stores are `MemoryStore::new()`, `RedisStore::connect(url).await?` and, with the feature of its database, \
            `PostgresStore`, `MySqlStore` and `SqliteStore`; one that is chosen at run time is an `Arc<dyn Store>` \
            or a `Box<dyn Store>`"
)]
pub trait Store: Send + Sync + 'static {
    /// Returns whether every method but [`changed`](Self::changed) takes effect when it is called and returns a
    /// [`StoreFuture::ready`].
    ///
    /// The layers call such a store without a future: they decide about a duplicate before anything is allocated for
    /// it, and end a run in the same poll in which its handler ends. A store that says so and returns a future that is
    /// not ready is asked once more, with the same claimant, and that future is awaited. A store that does any I/O, or
    /// may block its thread, returns `false`. The answer must not change.
    fn is_immediate(&self) -> bool;

    /// Inserts an issued record under `key`, unless a record is there.
    ///
    /// The record lives for [`Issue::lifetime`]. A claim does not prolong that, and a release restores its first
    /// expiry.
    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued>;

    /// Claims the right to run the operation of `key`.
    ///
    /// If the claim is granted, the record is running under the claim's claimant: the attempt is one higher than before
    /// (1 if there was no record), the lease lapses after [`Claim::lease`], and the record expires after the longer of
    /// that and [`Claim::horizon`], each counted from now. If the claim is not granted, the record stays as it was.
    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed>;

    /// Renews a running claim: lease and horizon count from now on. Nothing else of the record changes.
    ///
    /// A claimant that the record still names may renew at any time, even after its lease has lapsed; it is too late
    /// only once another claim has taken over.
    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed>;

    /// Ends a running claim with an answer. Everything else that the claim has left in the record stays.
    ///
    /// A claimant that has settled already receives [`AlreadyDone`](Finished::AlreadyDone), and its first settlement
    /// stays.
    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished>;

    /// Ends a running claim without an answer. Attempt, caller and origin are kept for [`Release::keep`]; a token
    /// becomes issued again, with the expiry that it had.
    ///
    /// With [`Release::undo`] the record becomes what it was before the claim. If the record began with the claim and
    /// belongs to no token, it is removed. Otherwise it becomes released or issued again with one attempt less, and
    /// without a caller if the claim brought the caller. A token that nobody else has claimed then has no origin.
    ///
    /// A claimant that has released already receives [`AlreadyDone`](Finished::AlreadyDone) as long as the record is
    /// there; whether it undid its claim makes no difference.
    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished>;

    /// Resolves once the record of `key` is no longer running under `holder`, or after `within` at the latest.
    ///
    /// A change that happened before the call counts. Neither a renewal nor a lease that lapses is a change.
    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()>;
}
