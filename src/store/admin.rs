//! The trait of operators: look at records, end abandoned ones, forget, purge, count.

use crate::value::{Claimant, Entry, Filter, Record, RecordKey, Release, Settlement, State};

use super::{Finished, Store, StoreFuture};

/// Operations for those who run a store: inspect, reconcile, clean up.
///
/// No request calls them. The rules of [`Store`] hold for these methods too. A [`Reconciler`](crate::Reconciler) uses
/// them.
pub trait StoreAdmin: Store {
    /// Returns the record of `key`.
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>>;

    /// Lists records of this namespace, a page at a time.
    ///
    /// A page has about `limit` entries, possibly none even if more pages follow. A record that exists from the first
    /// page to the last is listed at least once.
    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page>;

    /// Settles an abandoned record on behalf of its runner.
    ///
    /// The record has to be running under `seen` with a lapsed lease. From then on it belongs to the settlement's
    /// claimant, so that the runner, if it comes back, sees that it has lost its claim. A repetition with the same
    /// settlement returns [`AlreadyDone`](Finished::AlreadyDone). Anything else is refused.
    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished>;

    /// Releases an abandoned record on behalf of its runner, so that the next try runs.
    ///
    /// The same conditions hold as for [`settle_as`](Self::settle_as). A release that [undoes](Release::undo) is for an
    /// operator who knows that the work never began.
    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished>;

    /// Removes the record of `key`, whatever its state, and returns whether there was one.
    ///
    /// If the record was running, its runner has lost its claim, and the next request runs at the same time.
    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool>;

    /// Removes up to `limit` expired records, of any namespace, and returns how many.
    fn purge(&self, limit: usize) -> StoreFuture<'_, u64>;

    /// Returns how many records this namespace has, by state.
    fn stats(&self) -> StoreFuture<'_, Stats>;
}

/// The position at which the next page of [`StoreAdmin::list`] begins. It is opaque, and valid for the store that
/// returned it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(Box<[u8]>);

impl Cursor {
    /// Creates a cursor from a store's own bytes.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes that the store created it from.
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
    /// Where the next page begins; `None` if this page is the last.
    pub next: Option<Cursor>,
}

impl Page {
    /// Creates a page of records.
    #[must_use]
    pub fn new(entries: Vec<Entry>, next: Option<Cursor>) -> Self {
        Self { entries, next }
    }
}

/// The number of records in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Tokens that nobody has claimed.
    pub issued: u64,
    /// Running, with a lease that has not lapsed.
    pub running: u64,
    /// Running, with a lease that has lapsed.
    pub abandoned: u64,
    /// Settled, tombstones included.
    pub settled: u64,
    /// Released.
    pub released: u64,
}

impl Stats {
    /// Counts one more record in this state; `abandoned` is whether its lease has lapsed, if it is running.
    pub fn count(&mut self, state: State, abandoned: bool) {
        *match state {
            State::Issued => &mut self.issued,
            State::Running if abandoned => &mut self.abandoned,
            State::Running => &mut self.running,
            State::Settled => &mut self.settled,
            State::Released => &mut self.released,
        } += 1;
    }
}
