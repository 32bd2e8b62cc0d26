use crate::value::{Claimant, Entry, Filter, Record, RecordKey, Release, Settlement};

use super::{Finished, Store, StoreFuture};

/// What those who run a store can do with it: look, reconcile, clean up.
///
/// Nothing here is on a request's path. The rules of [`Store`] hold for these verbs too.
/// A [`Reconciler`](crate::Reconciler) puts them to use.
pub trait StoreAdmin: Store {
    /// Reads the record of `key`.
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>>;

    /// Lists records of this namespace, a page at a time.
    ///
    /// A page has about `limit` entries, possibly none though more pages follow. A record that is there from the first
    /// page to the last is listed at least once.
    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page>;

    /// Settles an abandoned record in its runner's place.
    ///
    /// It has to be running under `seen` and lapsed; from then on it is the settlement's claimant's, so that the
    /// runner, if it comes back, hears that it lost. Repeating it with the same settlement says that it is done already.
    /// Anything else is refused.
    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished>;

    /// Releases an abandoned record in its runner's place, so that the next try runs.
    ///
    /// The same conditions hold as for [`settle_as`](Self::settle_as). A release that [undoes](Release::undo) is for an
    /// operator who knows that nothing began.
    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished>;

    /// Removes the record of `key`, whatever its state; says whether there was one.
    ///
    /// If it was running, its runner has lost its claim, and the next request runs beside it.
    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool>;

    /// Removes up to `limit` records that have expired, of any namespace; says how many.
    fn purge(&self, limit: usize) -> StoreFuture<'_, u64>;

    /// Counts the records of this namespace.
    fn stats(&self) -> StoreFuture<'_, Stats>;
}

/// Where the next page of [`StoreAdmin::list`] begins. Opaque, and good for the store that gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(Box<[u8]>);

impl Cursor {
    /// A cursor of a store's own making.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// What the store made it of.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A page of [`StoreAdmin::list`].
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Page {
    /// The records.
    pub entries: Vec<Entry>,
    /// Where the next page begins; `None` where this is the last.
    pub next: Option<Cursor>,
}

impl Page {
    /// A page of records.
    #[must_use]
    pub fn new(entries: Vec<Entry>, next: Option<Cursor>) -> Self {
        Self { entries, next }
    }
}

/// How many records there are, by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Tokens that nobody has claimed.
    pub issued: u64,
    /// Running, with a lease that is alive.
    pub running: u64,
    /// Running, with a lease that has lapsed.
    pub abandoned: u64,
    /// Settled, tombstones among them.
    pub settled: u64,
    /// Released.
    pub released: u64,
}
