//! Stores: may this request run, and what was said?
//!
//! [`Store`] is what the layers use; [`StoreAdmin`] is for those who run them. A store knows no HTTP: what it keeps are
//! opaque bytes.
//!
//! Whoever writes a store finds the rules at [`Store`], and a suite that checks them in the feature `testing`.

mod cached;
mod future;
#[cfg(feature = "memory")]
mod memory;
mod admin;
mod outcome;
#[cfg(feature = "redis")]
mod redis;
mod shared;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
mod sql;
mod transaction;

use std::time::Duration;

use crate::value::RecordKey;

#[cfg(feature = "memory")]
#[cfg_attr(docsrs, doc(cfg(feature = "memory")))]
pub use self::memory::{Clock, MemoryStore, MemoryStoreBuilder};
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
pub use self::redis::{RedisStore, RedisStoreBuilder};
#[cfg(feature = "mysql")]
#[cfg_attr(docsrs, doc(cfg(feature = "mysql")))]
pub use self::sql::MySqlStore;
#[cfg(feature = "postgres")]
#[cfg_attr(docsrs, doc(cfg(feature = "postgres")))]
pub use self::sql::PostgresStore;
#[cfg(feature = "sqlite")]
#[cfg_attr(docsrs, doc(cfg(feature = "sqlite")))]
pub use self::sql::SqliteStore;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) use self::sql::is_identifier;
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))))]
pub use self::sql::{
    Message, NoTransaction, Outbox, OutboxStats, StagedMessage, SqlDatabase, SqlStatement, SqlStore, SqlStoreBuilder,
    SqlValue, Tx,
};
pub use crate::value::{
    Binding, Caller, Claim, Claimant, Entry, Filter, Granted, Head, Issue, Origin, Record, Release, SecretNumber,
    Settlement, State, TraceContext, Verdict, judge,
};

pub use self::{
    cached::CachedStore,
    future::StoreFuture,
    admin::{Cursor, StoreAdmin, Page, Stats},
    outcome::{Claimed, Finished, Issued, Renewed},
    transaction::{Committed, Entered, FailedAttempt, Transaction, TransactionSlot, TransactionalStore},
};

/// Where records are kept.
///
/// # Contract
///
/// - Each verb is one atomic step: two calls on one key take effect one after the other, wherever they come from.
/// - Time is the store's own clock, in milliseconds. Expiry is checked when a record is read: what has expired is not
///   there, removed or not.
/// - A record that is issued, running or settled is never dropped before its time. A store that has no room says
///   [`Full`](crate::StoreErrorKind::Full). One that cannot keep an answer because of its size says
///   [`TooLarge`](crate::StoreErrorKind::TooLarge), and takes a tombstone in its place.
/// - [`judge`] decides about every claim. A store does not decide by itself.
/// - What was granted, settled or released stays so when the caller never hears of it: a future that is dropped may
///   have taken effect. Calls may be repeated; the claimant tells its own earlier call from a stranger's.
/// - A copy of a claim that arrives late, after the claim was released, is [`Withdrawn`](Claimed::Withdrawn) as long as the
///   record names its claimant. If another claim was granted in between, or the record is gone (expired, forgotten, or
///   undone), the copy is a claim like any other and may be granted, though nobody runs it: the key is held for a lease, and
///   if it is to run at most once, its outcome is unknown from then on. So nothing between a store and its server may keep
///   copies of a claim and send them later.
/// - Keys of two namespaces never meet.
///
/// There are no default bodies, on purpose: a wrapper that forgets a verb must not compile.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store",
    label = "not a store",
    note = "stores are `MemoryStore::new()`, `RedisStore::connect(url).await?` and, with the feature of its database, \
            `PostgresStore`, `MySqlStore` and `SqliteStore`; one that is chosen at run time is an `Arc<dyn Store>`"
)]
pub trait Store: Send + Sync + 'static {
    /// Puts an issued record under `key`, unless a record is there.
    ///
    /// It lives for [`Issue::lifetime`]; claiming it does not prolong that, and releasing it brings it back with its
    /// first expiry.
    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued>;

    /// Asks to run the operation of `key`.
    ///
    /// Granted, the record is running under the claim's claimant: the attempt is one higher than before (1 if there
    /// was no record), the lease lapses after [`Claim::lease`] and the record is gone after the longer of that and
    /// [`Claim::horizon`], each from now on. Not granted, the record stays as it was.
    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed>;

    /// Prolongs a running claim: lease and horizon count from now on. Nothing else of the record changes.
    ///
    /// A claimant that still matches may renew however late it comes; only a takeover makes it late.
    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed>;

    /// Ends a running claim with an answer. Everything else that the claim has left in the record stays.
    ///
    /// A claimant that has settled already is told so, and what it settled with first stays.
    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished>;

    /// Ends a running claim without an answer. Attempt, caller and origin stay, for [`Release::keep`]; a token is issued
    /// again, with the expiry that it had.
    ///
    /// With [`Release::undo`] the record becomes what it was before the claim. If it began with the claim and is no token's,
    /// there is no record then. Otherwise it is released or issued again with one attempt less, and without a caller if the
    /// claim brought it. A token that nobody else has claimed has no origin then.
    ///
    /// A claimant that has released already is told so as long as the record is there; whether it undid its claim makes no
    /// difference.
    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished>;

    /// Resolves when the record of `key` is no longer running under `holder`, or after `within`.
    ///
    /// A change that happened before this was called counts. A renewal is no change, nor is a lease that lapses.
    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()>;
}
