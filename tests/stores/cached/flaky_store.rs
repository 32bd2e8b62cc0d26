use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use tower_idempotency::{
    MemoryStore, StoreError,
    store::{
        Claim, Claimant, Claimed, Cursor, Filter, Finished, Issue, Issued, Page, Record, RecordKey, Release, Renewed,
        Settlement, Stats, Store, StoreAdmin, StoreErrorKind, StoreFuture,
    },
};

#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum Mood {
    Fine,
    Failing,
    Silent,
}

/// A store that fails, or does not answer, whatever it is asked; it counts how often it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlakyStore {
    pub(crate) inner: MemoryStore,
    mood: Arc<AtomicU8>,
    asked: Arc<AtomicUsize>,
}

impl FlakyStore {
    pub(crate) fn over(inner: MemoryStore) -> Self {
        Self { inner, ..Self::default() }
    }

    pub(crate) fn is(&self, mood: Mood) {
        self.mood.store(mood as u8, SeqCst);
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(SeqCst)
    }

    fn through<'a, T: Send + Unpin + 'a>(&self, call: impl FnOnce() -> StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        self.asked.fetch_add(1, SeqCst);
        match self.mood.load(SeqCst) {
            0 => call(),
            1 => StoreFuture::ready(Err(StoreError::new(StoreErrorKind::Unavailable, "away"))),
            _ => StoreFuture::new(pending()),
        }
    }
}

impl Store for FlakyStore {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        self.through(|| self.inner.issue(key, issue))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        self.through(|| self.inner.claim(key, claim))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        self.through(|| self.inner.renew(key, claim))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        self.through(|| self.inner.settle(key, settlement))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.through(|| self.inner.release(key, release))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        self.through(|| self.inner.changed(key, holder, within))
    }
}

impl StoreAdmin for FlakyStore {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        self.through(|| self.inner.inspect(key))
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        self.through(|| self.inner.list(filter, after, limit))
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        self.through(|| self.inner.settle_as(key, seen, settlement))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.through(|| self.inner.release_as(key, seen, release))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        self.through(|| self.inner.forget(key))
    }

    fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
        self.through(|| self.inner.purge(limit))
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        self.through(|| self.inner.stats())
    }
}
