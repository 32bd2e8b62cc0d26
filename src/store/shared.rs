use std::{sync::Arc, time::Duration};

use crate::value::{Claim, Claimant, Filter, Issue, Record, RecordKey, Release, Settlement};

use super::{Claimed, Cursor, Finished, Issued, Page, Renewed, Stats, Store, StoreAdmin, StoreFuture};

impl<S: Store + ?Sized> Store for Arc<S> {
    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        (**self).issue(key, issue)
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        (**self).claim(key, claim)
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        (**self).renew(key, claim)
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        (**self).settle(key, settlement)
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        (**self).release(key, release)
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        (**self).changed(key, holder, within)
    }
}

impl<S: StoreAdmin + ?Sized> StoreAdmin for Arc<S> {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        (**self).inspect(key)
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        (**self).list(filter, after, limit)
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        (**self).settle_as(key, seen, settlement)
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        (**self).release_as(key, seen, release)
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        (**self).forget(key)
    }

    fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
        (**self).purge(limit)
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        (**self).stats()
    }
}
