//! A store of a few lines: a map of bytes, and the rules of `RecordSlot`.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tower_idempotency::{
    store::{
        Claim, Claimant, Claimed, Cursor, Entry, Filter, Finished, Issue, Issued, Page, Record, RecordKey, RecordSlot,
        Release, Renewed, Settlement, Stats, Store, StoreAdmin, StoreFuture,
    },
    testing::ManualClock,
};

pub struct SlotStore {
    clock: ManualClock,
    records: Mutex<BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl SlotStore {
    pub fn new(clock: ManualClock) -> Self {
        Self { clock, records: Mutex::default() }
    }

    fn update<T>(&self, key: &RecordKey, rule: impl FnOnce(&mut RecordSlot) -> T) -> StoreFuture<'_, T> {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let before = records.get(key.as_bytes()).map(Vec::as_slice);
        StoreFuture::ready(RecordSlot::from_bytes(before, self.clock.now()).map(|mut slot| {
            let answer = rule(&mut slot);
            if slot.is_changed() {
                match slot.to_bytes() {
                    Some(bytes) => records.insert(key.as_bytes().to_vec(), bytes),
                    None => records.remove(key.as_bytes()),
                };
            }
            answer
        }))
    }

    fn entries(&self) -> Vec<Entry> {
        let records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let read = |bytes: &[u8]| RecordSlot::from_bytes(Some(bytes), self.clock.now()).and_then(|slot| slot.inspect());
        let entries = records.iter().filter_map(|(key, bytes)| {
            let key = RecordKey::from_bytes(key.as_slice()).expect("a key");
            Some(Entry::new(key, read(bytes).expect("a record")?))
        });
        entries.collect()
    }
}

impl Store for SlotStore {
    fn is_immediate(&self) -> bool {
        true
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        self.update(key, |slot| slot.issue(issue))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        self.update(key, |slot| slot.claim(claim))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        self.update(key, |slot| slot.renew(claim))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        self.update(key, |slot| slot.settle(settlement))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.update(key, |slot| slot.release(release))
    }

    /// Nobody waits for it.
    fn changed<'a>(&'a self, _: &'a RecordKey, _: Claimant, _: Duration) -> StoreFuture<'a, ()> {
        StoreFuture::ready(Ok(()))
    }
}

impl StoreAdmin for SlotStore {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        StoreFuture::ready(self.update(key, |slot| slot.inspect()).into_ready().expect("it is immediate").flatten())
    }

    fn list<'a>(&'a self, filter: Filter, _: Option<Cursor>, _: usize) -> StoreFuture<'a, Page> {
        let entries = self.entries().into_iter().filter(|entry| filter.admits(&entry.record));
        StoreFuture::ready(Ok(Page::new(entries.collect(), None)))
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        self.update(key, |slot| slot.settle_as(seen, settlement))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.update(key, |slot| slot.release_as(seen, release))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        self.update(key, RecordSlot::forget)
    }

    fn purge(&self, _: usize) -> StoreFuture<'_, u64> {
        StoreFuture::ready(Ok(0))
    }

    fn stats(&self) -> StoreFuture<'_, Stats> {
        let mut stats = Stats::default();
        for Entry { record, .. } in self.entries() {
            stats.count(record.state, record.is_abandoned());
        }
        StoreFuture::ready(Ok(stats))
    }
}
