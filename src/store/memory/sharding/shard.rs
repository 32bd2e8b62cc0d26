//! One part of the records. It keeps no rule; `ShardGuard` decides when what changes.
//!
//! The index holds hash and slot, not the key: a lookup compares the hash first and the entry's key then, and a table
//! that grows rehashes without reading an entry.

use hashbrown::HashTable;

use crate::value::State;

use super::{hashed_key::HashedKey, slab::Slab, waiters::SlotWaiters, wheel::Wheel};

/// Tables up to this many entries are kept when they are empty.
const KEPT_CAPACITY: usize = 256;

/// A part of the records, with a lock of its own.
pub(in crate::store::memory) struct Shard {
    /// The slots by the hash of namespace and key.
    index: HashTable<IndexEntry>,
    /// The entries.
    pub(in crate::store::memory) slab: Slab,
    /// Released records have a wheel of their own, which gives the next one to remove if room is short.
    timers: Wheel,
    /// The expiries of released records.
    released: Wheel,
    /// The waiters of this shard's records.
    pub(in crate::store::memory) waiters: SlotWaiters,
    /// The latest time that any call came with.
    pub(in crate::store::memory) now: u64,
    /// How many calls the shard has had.
    pub(in crate::store::memory) calls: usize,
}

/// The place of an entry. It includes the hash, so that a growing table reads no entry.
#[derive(Clone, Copy)]
struct IndexEntry {
    hash: u32,
    slot: u32,
}

impl Shard {
    /// Creates an empty shard, which has allocated nothing yet.
    pub(in crate::store::memory) fn new() -> Self {
        Self {
            index: HashTable::new(),
            slab: Slab::default(),
            timers: Wheel::new(),
            released: Wheel::new(),
            waiters: SlotWaiters::default(),
            now: 0,
            calls: 0,
        }
    }

    /// Returns the slot of a key, whether its record has expired or not.
    pub(in crate::store::memory) fn find(&self, hashed: &HashedKey<'_>) -> Option<u32> {
        let key = hashed.key.as_bytes();
        let is = |entry: &IndexEntry| entry.hash == hashed.hash && self.slab[entry.slot].is(hashed.namespace, key);
        self.index.find(table_hash(hashed.hash), is).map(|entry| entry.slot)
    }

    /// Adds a slot to the index.
    pub(in crate::store::memory) fn index_insert(&mut self, hash: u32, slot: u32) {
        self.index.insert_unique(table_hash(hash), IndexEntry { hash, slot }, |entry| table_hash(entry.hash));
    }

    /// Removes a slot from the index, and frees the index if it was the last one.
    pub(in crate::store::memory) fn index_remove(&mut self, hash: u32, slot: u32) {
        if let Ok(found) = self.index.find_entry(table_hash(hash), |entry| entry.slot == slot) {
            found.remove();
        }
        // Shrinking a table that has entries would move all of them at once, and the call would have to wait for that.
        if self.index.is_empty() && self.index.capacity() > KEPT_CAPACITY {
            self.index = HashTable::new();
        }
    }

    /// Adds an entry to the wheel of its state.
    pub(in crate::store::memory) fn schedule(&mut self, slot: u32) {
        let (wheel, slab) = self.wheel(self.slab[slot].state());
        wheel.insert(slab, slot);
    }

    /// Removes an entry from the wheel of its state.
    pub(in crate::store::memory) fn unschedule(&mut self, slot: u32) {
        self.unschedule_from(slot, self.slab[slot].state());
    }

    /// Moves an entry that was in the state `was` and expired at `ended` to its new wheel and place.
    pub(in crate::store::memory) fn reschedule(&mut self, slot: u32, was: State, ended: u64) {
        let entry = &self.slab[slot];
        let released = [was, entry.state()].contains(&State::Released);
        // A wheel itself moves an entry that expires later than its place says.
        if released || entry.expires() < ended {
            self.unschedule_from(slot, was);
            self.schedule(slot);
        }
    }

    /// Removes an entry from the wheel that it was put into in the state `state`.
    fn unschedule_from(&mut self, slot: u32, state: State) {
        let (wheel, slab) = self.wheel(state);
        wheel.remove(slab, slot);
    }

    /// Returns the wheel for a state, and the slab that its lists run through.
    fn wheel(&mut self, state: State) -> (&mut Wheel, &mut Slab) {
        (if state == State::Released { &mut self.released } else { &mut self.timers }, &mut self.slab)
    }

    /// Returns an expired entry of either wheel, if `budget` suffices to find one.
    pub(in crate::store::memory) fn next_expired(&mut self, now: u64, budget: &mut usize) -> Option<u32> {
        self.timers
            .next_expired(&mut self.slab, now, budget)
            .or_else(|| self.released.next_expired(&mut self.slab, now, budget))
    }

    /// Returns the released entry that is removed next if room is short.
    pub(in crate::store::memory) fn oldest_released(&self) -> Option<u32> {
        self.released.first()
    }

    /// Returns how many records are running, including abandoned ones.
    pub(in crate::store::memory) fn running(&self) -> usize {
        let entries = (0..self.slab.end()).filter_map(|slot| self.slab.get(slot));
        entries.filter(|entry| entry.state() == State::Running && entry.expires() > self.now).count()
    }

    #[cfg(test)]
    pub(in crate::store::memory) fn index_capacity(&self) -> usize {
        self.index.capacity()
    }
}

/// Spreads a hash, since a table takes the place from its low bits and a tag from its high ones.
fn table_hash(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}
