use crate::{
    store::{Cursor, Finished, Page, Stats, StoreAdmin, StoreFuture, support::forward_store},
    value::{Claimant, Entry, Filter, Record, RecordKey, Release, Settlement},
};

use super::SealedStore;

/// Administers the inner store. Records are opened; what cannot be opened stays sealed, and the record says so.
impl<S: StoreAdmin> StoreAdmin for SealedStore<S> {
    forward_store!([inner] forget, purge, stats);

    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        self.inner.inspect(key).map(|record| record.map(|record| self.sealer.record(key, record)))
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        self.inner.list(filter, after, limit).map(|page| {
            let opened = |Entry { key, record }| {
                let record = self.sealer.record(&key, record);
                Entry::new(key, record)
            };
            Page::new(page.entries.into_iter().map(opened).collect(), page.next)
        })
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        let opened = |finished| self.sealer.finished(key, finished);
        match self.sealer.settlement(key, settlement) {
            Ok(None) => self.inner.settle_as(key, seen, settlement).map(opened),
            Ok(Some(sealed)) => {
                self.ask((key, sealed), move |inner, (key, sealed)| inner.settle_as(key, seen, sealed), opened)
            }
            Err(error) => StoreFuture::ready(Err(error)),
        }
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.inner.release_as(key, seen, release).map(|finished| self.sealer.finished(key, finished))
    }
}
