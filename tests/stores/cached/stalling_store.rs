use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tower_idempotency::{
    MemoryStore,
    store::{
        Claim, Claimant, Claimed, Cursor, Filter, Finished, Issue, Issued, Page, Record, RecordKey, Release, Renewed,
        Settlement, Stats, Store, StoreAdmin, StoreFuture,
    },
    testing::ManualClock,
};

const MINUTE: Duration = Duration::from_secs(60);

/// What is on the way when the process stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// An answer.
    Claim,
    /// An answer.
    Inspect,
    /// A settlement that has not been sent.
    Settle,
}

/// A store whose process stands still for a minute, so that no timer of the process sees it.
#[derive(Clone, Debug)]
pub(crate) struct Stalling {
    pub(crate) inner: MemoryStore,
    clock: ManualClock,
    over: Arc<Mutex<Option<Over>>>,
}

impl Stalling {
    pub(crate) fn new(clock: &ManualClock) -> Self {
        let inner = MemoryStore::builder().clock(clock.clone()).build();
        Self { inner, clock: clock.clone(), over: Arc::default() }
    }

    /// Stands still over the next one of this kind.
    pub(crate) fn stall(&self, over: Over) {
        *self.over.lock().unwrap() = Some(over);
    }

    fn then<'a, T: Send + Unpin + 'a>(&'a self, over: Over, answer: StoreFuture<'a, T>) -> StoreFuture<'a, T> {
        StoreFuture::new(async move {
            let answer = answer.await;
            self.stand_still(over);
            answer
        })
    }

    fn stand_still(&self, over: Over) {
        let stalls = self.over.lock().unwrap().take_if(|stall| *stall == over).is_some();
        if stalls {
            self.clock.advance(MINUTE);
        }
    }
}

impl Store for Stalling {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        self.inner.issue(key, issue)
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        self.then(Over::Claim, self.inner.claim(key, claim))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        self.inner.renew(key, claim)
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        self.stand_still(Over::Settle);
        self.inner.settle(key, settlement)
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.inner.release(key, release)
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        self.inner.changed(key, holder, within)
    }
}

impl StoreAdmin for Stalling {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        self.then(Over::Inspect, self.inner.inspect(key))
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        self.inner.list(filter, after, limit)
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        self.inner.settle_as(key, seen, settlement)
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.inner.release_as(key, seen, release)
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        self.inner.forget(key)
    }

    fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
        self.inner.purge(limit)
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        self.inner.stats()
    }
}
