use crate::{
    store::{Cursor, Finished, Page, Stats, StoreAdmin, StoreFuture, support::forward_store},
    value::{Claimant, Filter, Record, RecordKey, Release, Settlement},
};

use super::CachedStore;

/// Administers the store behind. If a record is ended or forgotten there, its copy is removed as well.
impl<F: StoreAdmin, S: StoreAdmin> StoreAdmin for CachedStore<F, S> {
    forward_store!([inner] inspect, list, stats);

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        StoreFuture::new(async move {
            let finished = self.inner.settle_as(key, seen, settlement).await;
            self.evict(key).await;
            finished
        })
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(async move {
            let finished = self.inner.release_as(key, seen, release).await;
            self.evict(key).await;
            finished
        })
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        StoreFuture::new(async move {
            let removed = self.inner.forget(key).await;
            // Also if the error leaves open whether the call took effect.
            self.evict(key).await;
            removed
        })
    }

    /// Purges the store behind. Expired copies are removed too, and not counted.
    fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
        StoreFuture::new(async move {
            if !self.breaker.is_open() {
                self.with_timeout(self.cache.purge(limit)).await;
            }
            self.inner.purge(limit).await
        })
    }
}
