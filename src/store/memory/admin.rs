//! The operator's verbs.
//!
//! Listing walks over the slots of one shard after the other and locks a shard for a bounded number of slots. A record
//! keeps its slot, so no record that stays is missed, however long the walk takes; the cursor is shard and slot.

use crate::{
    store::{Cursor, Finished, Page, Stats, StoreAdmin, StoreFuture},
    value::{Behalf, Claimant, Entry, Filter, Record, RecordKey, Release, Settlement, StoreError, StoreErrorKind},
};

use super::{
    MemoryStore,
    full::Full,
    record::{RecordView, Scoped},
};

/// How many slots are visited before a lock is released.
const SLOTS_PER_LOCK: u32 = 256;

/// How many slots a page visits at most if few records match.
const PAGE_SLOTS: u32 = 16 * 1024;

impl StoreAdmin for MemoryStore {
    fn inspect<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, Option<Record>> {
        let hashed = self.hashed(key);
        StoreFuture::ready(Ok(self.memory.guard(hashed.shard, self.memory.now()).inspect(&hashed)))
    }

    fn list<'a>(&'a self, filter: Filter, after: Option<Cursor>, limit: usize) -> StoreFuture<'a, Page> {
        let from = match after.as_ref().map(Position::read) {
            None => Position::default(),
            Some(Some(position)) => position,
            Some(None) => {
                let message = "the cursor is none of this store's";
                return StoreFuture::ready(Err(StoreError::new(StoreErrorKind::Other, message)));
            }
        };
        StoreFuture::ready(Ok(self.page(filter, from, limit.max(1))))
    }

    fn settle_as<'a>(
        &'a self,
        key: &'a RecordKey,
        seen: Claimant,
        settlement: &'a Settlement,
    ) -> StoreFuture<'a, Finished> {
        let hashed = self.hashed(key);
        let settled =
            self.memory.run_with_capacity(hashed.shard, |guard| guard.settle(&hashed, Behalf::Of(seen), settlement));
        StoreFuture::ready(settled.map_err(Full::of_an_answer))
    }

    fn release_as<'a>(&'a self, key: &'a RecordKey, seen: Claimant, release: &'a Release) -> StoreFuture<'a, Finished> {
        let hashed = self.hashed(key);
        let now = self.memory.now();
        StoreFuture::ready(Ok(self
            .memory
            .run(hashed.shard, now, |guard| guard.release(&hashed, Behalf::Of(seen), release))))
    }

    fn forget<'a>(&'a self, key: &'a RecordKey) -> StoreFuture<'a, bool> {
        let hashed = self.hashed(key);
        StoreFuture::ready(Ok(self.memory.run(hashed.shard, self.memory.now(), |guard| guard.forget(&hashed))))
    }

    /// Removes expired records of all namespaces. Records that other calls have removed are not counted.
    fn purge(&self, limit: usize) -> StoreFuture<'_, u64> {
        let now = self.memory.now();
        let mut removed = 0;
        for shard in 0..self.memory.shards() {
            removed += self.memory.purge_shard(shard, now, limit - removed);
        }
        StoreFuture::ready(Ok(removed as u64))
    }

    /// Visits every record.
    fn stats(&self) -> StoreFuture<'_, Stats> {
        let now = self.memory.now();
        let mut stats = Stats::default();
        let mut at = Some(Position::default());
        while let Some(position) = at {
            at = self.walk(position, now, |entry, now| {
                stats.count(entry.state(), entry.is_abandoned(now));
                true
            });
        }
        StoreFuture::ready(Ok(stats))
    }
}

impl MemoryStore {
    /// Collects the records of a page. It may have fewer than `limit` although more follow.
    fn page(&self, filter: Filter, from: Position, limit: usize) -> Page {
        let now = self.memory.now();
        let mut entries = Vec::new();
        let mut next = Some(from);
        let mut calls = PAGE_SLOTS / SLOTS_PER_LOCK;
        while let Some(position) = next.filter(|_| entries.len() < limit && calls > 0) {
            next = self.walk(position, now, |entry, now| {
                let admitted = match filter {
                    Filter::All => true,
                    Filter::State(state) => entry.state() == state,
                    Filter::Abandoned => entry.is_abandoned(now),
                };
                if admitted {
                    let key = RecordKey::from_bytes(entry.key());
                    entries.extend(key.map(|key| Entry::new(key, entry.record(now))));
                }
                entries.len() < limit
            });
            calls -= 1;
        }
        Page::new(entries, next.map(Position::write))
    }

    /// Passes the records of this namespace in the next few slots to `see`, as long as it asks for more; returns where
    /// to go on.
    fn walk(&self, from: Position, now: u64, mut see: impl FnMut(&RecordView<'_>, u64) -> bool) -> Option<Position> {
        if from.shard as usize >= self.memory.shards() {
            return None;
        }
        let guard = self.memory.guard(from.shard as usize, now);
        let end = guard.shard.records.slots.end();
        for slot in from.slot..end.min(from.slot.saturating_add(SLOTS_PER_LOCK)) {
            let entry = guard.shard.records.get(slot);
            let own = entry.filter(|entry| entry.namespace() == self.namespace && entry.expires() > guard.now);
            if own.is_some_and(|entry| !see(&entry, guard.now)) {
                return Some(Position { slot: slot + 1, ..from });
            }
        }
        let slot = from.slot.saturating_add(SLOTS_PER_LOCK);
        let next = if slot < end { Position { slot, ..from } } else { Position { shard: from.shard + 1, slot: 0 } };
        ((next.shard as usize) < self.memory.shards()).then_some(next)
    }
}

/// A position in a walk over all slots. A record keeps its slot, so no record that stays is missed.
#[derive(Clone, Copy, Default)]
struct Position {
    /// The shard that the walk is in; lower ones are done.
    shard: u32,
    slot: u32,
}

impl Position {
    /// Reads a cursor; `None` if it is not one of this store.
    fn read(cursor: &Cursor) -> Option<Self> {
        let (shard, slot) = cursor.as_bytes().split_first_chunk()?;
        Some(Self { shard: u32::from_be_bytes(*shard), slot: u32::from_be_bytes(slot.try_into().ok()?) })
    }

    /// Returns the cursor for the next page.
    fn write(self) -> Cursor {
        Cursor::from_bytes([self.shard.to_be_bytes(), self.slot.to_be_bytes()].concat())
    }
}
