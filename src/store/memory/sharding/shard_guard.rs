//! A locked shard for the length of one call.
//!
//! The fields are dropped in their order: the lock first, then `deferred`, whose destructors may run code of the
//! application. This order is what keeps that code from running under the lock, and must not be changed.

use std::sync::{Arc, MutexGuard};

use tokio::sync::Notify;

use crate::{
    store::memory::{
        capacity::{Capacity, Full},
        record::{Extra, MemoryRecord},
    },
    value::State,
};

use super::{
    hashed_key::{HashedKey, KeyHasher},
    shard::Shard,
};

/// A locked shard, and what is to be done once it is unlocked. The order of the fields ensures that the lock is dropped
/// first.
pub(in crate::store::memory) struct ShardGuard<'a> {
    /// The lock. It is the first field, so that it is dropped first.
    pub(in crate::store::memory) shard: MutexGuard<'a, Shard>,
    /// What is done once the lock is released.
    pub(in crate::store::memory) deferred: Deferred,
    capacity: &'a Capacity,
    hasher: &'a KeyHasher,
    /// The time of the call. It is the same for all of its steps.
    pub(in crate::store::memory) now: u64,
}

/// Waiters to wake, and values to drop whose destructors may be the application's.
#[derive(Default)]
pub(in crate::store::memory) struct Deferred {
    /// Payloads and notes that the call has removed.
    pub(in crate::store::memory) extras: Vec<Extra>,
    /// The waiters of records that the call has changed.
    pub(in crate::store::memory) woken: Vec<Arc<Notify>>,
}

impl Drop for Deferred {
    fn drop(&mut self) {
        for notify in &self.woken {
            notify.notify_waiters();
        }
    }
}

impl<'a> ShardGuard<'a> {
    /// Begins a call at `now`, or at the latest time that the shard has seen.
    pub(in crate::store::memory) fn new(
        capacity: &'a Capacity,
        hasher: &'a KeyHasher,
        mut shard: MutexGuard<'a, Shard>,
        now: u64,
    ) -> Self {
        // Two threads may have read the clock in a different order than they acquired the lock.
        shard.now = shard.now.max(now);
        let now = shard.now;
        Self { shard, deferred: Deferred::default(), capacity, hasher, now }
    }

    /// Returns the number of this call on the shard.
    pub(in crate::store::memory) fn next_call(&mut self) -> usize {
        self.shard.calls = self.shard.calls.wrapping_add(1);
        self.shard.calls
    }

    /// Returns the slot of a record, if it exists.
    pub(in crate::store::memory) fn find(&mut self, hashed: &HashedKey<'_>) -> Option<u32> {
        let slot = self.shard.find(hashed)?;
        if self.shard.slab[slot].expires() > self.now {
            return Some(slot);
        }
        self.remove(slot);
        None
    }

    /// Inserts a record if there is none. A record that has expired already needs no room.
    pub(in crate::store::memory) fn insert(
        &mut self,
        hashed: &HashedKey<'_>,
        fill: impl FnOnce(&mut MemoryRecord),
    ) -> Result<(), Full> {
        let mut entry = MemoryRecord::new(hashed.namespace, hashed.key, self.now);
        fill(&mut entry);
        let stays = entry.expires() > self.now;
        let taken = if stays { self.capacity.reserve(&entry) } else { Ok(()) };
        if !stays || taken.is_err() {
            self.deferred.extras.extend(entry.into_extra());
            return taken;
        }
        let slot = self.shard.slab.insert(entry);
        self.shard.index_insert(hashed.hash, slot);
        self.shard.schedule(slot);
        Ok(())
    }

    /// Reserves room for what a record is to grow by.
    pub(in crate::store::memory) fn reserve_bytes(&self, growth: usize) -> Result<(), Full> {
        self.capacity.reserve_bytes(growth)
    }

    /// Reserves room for an existing record to run again, and to grow.
    pub(in crate::store::memory) fn reserve_rerun(&self, slot: u32, growth: usize) -> Result<(), Full> {
        let (capacity, entry) = (self.capacity, &self.shard.slab[slot]);
        capacity.reserve_bytes(growth)?;
        if entry.state() == State::Released {
            capacity.reserve_share(entry).inspect_err(|_| capacity.release_bytes(growth))?;
        }
        Ok(())
    }

    /// Changes a record, and updates its place and counts. Room for `growth`, the most that it grows by, has to be
    /// reserved.
    ///
    /// Every change of an existing record goes through here. `update` returns what it has replaced, to be dropped after
    /// the lock.
    pub(in crate::store::memory) fn update(
        &mut self,
        slot: u32,
        growth: usize,
        change: impl FnOnce(&mut MemoryRecord) -> Option<Extra>,
    ) {
        let entry = &mut self.shard.slab[slot];
        let (was, claimant, ended) = (entry.weight(), entry.claimant(), entry.expires());
        self.deferred.extras.extend(change(entry));
        let changed = (was.state, claimant) != (entry.state(), entry.claimant());
        self.capacity.update(entry, was, growth);
        self.shard.reschedule(slot, was.state, ended);
        if changed {
            self.wake(slot);
        }
        if self.shard.slab[slot].expires() <= self.now {
            self.remove(slot);
        }
    }

    /// Removes a record from its wheel, the slab, the index and the counts, and wakes its waiters.
    pub(in crate::store::memory) fn remove(&mut self, slot: u32) {
        self.wake(slot);
        self.shard.unschedule(slot);
        let Some(entry) = self.shard.slab.remove(slot) else { return };
        let hash = self.hasher.index_hash(entry.namespace(), entry.key());
        self.shard.index_remove(hash, slot);
        self.capacity.release(&entry);
        self.deferred.extras.extend(entry.into_extra());
    }

    /// Removes up to `limit` expired records, visiting no more than `budget`. Returns how many, and whether it is
    /// certain that no other has expired.
    pub(in crate::store::memory) fn expire(&mut self, limit: usize, mut budget: usize) -> (usize, bool) {
        let mut removed = 0;
        while removed < limit {
            let Some(slot) = self.shard.next_expired(self.now, &mut budget) else {
                return (removed, budget > 0);
            };
            self.remove(slot);
            removed += 1;
        }
        (removed, false)
    }

    /// Returns when the released record that would be removed next for room expires.
    pub(in crate::store::memory) fn oldest_released(&self) -> Option<u64> {
        Some(self.shard.slab[self.shard.oldest_released()?].expires())
    }

    /// Removes the released record that would expire first; returns whether there was one.
    pub(in crate::store::memory) fn drop_released(&mut self) -> bool {
        let oldest = self.shard.oldest_released();
        if let Some(slot) = oldest {
            self.remove(slot);
        }
        oldest.is_some()
    }

    /// Collects the waiters of a record, to be woken once the shard is unlocked.
    fn wake(&mut self, slot: u32) {
        if self.shard.slab[slot].is_waited_for() {
            self.shard.slab[slot].set_waited_for(false);
            let notify = self.shard.waiters.take(slot);
            self.deferred.woken.extend(notify);
        }
    }
}
