//! A locked shard for the length of one call.
//!
//! The fields are dropped in their order: the lock first, then `deferred`, whose destructors may run code of the
//! application. This order is what keeps that code from running under the lock, and must not be changed.

use std::sync::{Arc, MutexGuard};

use tokio::sync::Notify;

use crate::{
    store::memory::{
        capacity::Capacity,
        full::Full,
        record::{Extra, RecordChange, RecordDraft, RecordView, Records, Scoped},
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
    #[inline]
    pub(in crate::store::memory) fn find(&mut self, hashed: &HashedKey<'_>) -> Option<u32> {
        let (slot, expires) = self.shard.find(hashed)?;
        if expires > self.now {
            return Some(slot);
        }
        self.remove(slot);
        None
    }

    /// Returns the record in a slot that [`find`](Self::find) has returned.
    #[inline]
    pub(in crate::store::memory) fn record(&self, slot: u32) -> RecordView<'_> {
        self.shard.record(slot)
    }

    /// Inserts a record whose key has none. A record that has expired already needs no room.
    #[inline]
    pub(in crate::store::memory) fn insert(&mut self, hash: u32, record: &mut RecordDraft<'_>) -> Result<(), Full> {
        let shard = &mut *self.shard;
        let stays = record.expires() > self.now;
        let taken = if stays { self.capacity.reserve(&mut shard.room, record) } else { Ok(()) };
        if !stays || taken.is_err() {
            self.deferred.extras.extend(record.take_extra().map(|extra| *extra));
            return taken;
        }
        let (state, expires) = (record.weight().state, record.expires());
        let slot = shard.records.insert(record);
        shard.enter(hash, slot, state, expires);
        Ok(())
    }

    /// Replaces a record by that of a claim which has been granted.
    pub(in crate::store::memory) fn replace(&mut self, slot: u32, record: &mut RecordDraft<'_>) -> Result<(), Full> {
        let growth = record.weight().bytes.saturating_sub(self.record(slot).weight().bytes);
        let taken = self.reserve_rerun(slot, growth);
        if taken.is_err() {
            self.deferred.extras.extend(record.take_extra().map(|extra| *extra));
            return taken;
        }
        self.update(slot, growth, |records| records.replace(slot, record));
        Ok(())
    }

    /// Reserves room for what a record is to grow by.
    #[inline]
    pub(in crate::store::memory) fn reserve_bytes(&mut self, growth: usize) -> Result<(), Full> {
        self.capacity.reserve_bytes(&mut self.shard.room, growth)
    }

    /// Reserves room for an existing record to run again, and to grow.
    fn reserve_rerun(&mut self, slot: u32, growth: usize) -> Result<(), Full> {
        self.reserve_bytes(growth)?;
        let record = self.shard.record(slot);
        if record.state() == State::Released
            && let Err(full) = self.capacity.reserve_share(&record)
        {
            self.capacity.release_bytes(&mut self.shard.room, growth);
            return Err(full);
        }
        Ok(())
    }

    /// Changes a record, and updates its place and counts. Room for `growth`, the most that it grows by, has to be
    /// reserved.
    ///
    /// Every change of an existing record goes through here. What it has replaced is dropped after the lock.
    #[inline]
    pub(in crate::store::memory) fn update(
        &mut self,
        slot: u32,
        growth: usize,
        change: impl FnOnce(&mut Records) -> Option<RecordChange>,
    ) {
        let shard = &mut *self.shard;
        let Some(mut change) = change(&mut shard.records) else { return };
        self.deferred.extras.extend(change.left.take().map(|extra| *extra));
        self.capacity.update(&mut shard.room, slot, &change, growth, &shard.records);
        shard.reschedule(slot, &change);
        if change.wakes() {
            self.wake(slot);
        }
        if change.after.expires <= self.now {
            self.remove(slot);
        }
    }

    /// Removes a record from the order of expiry, the index and the counts, and wakes its waiters.
    pub(in crate::store::memory) fn remove(&mut self, slot: u32) {
        let state = self.record(slot).state();
        self.shard.unschedule(slot, state);
        self.take_out(slot);
    }

    /// Removes a record that is in no order of expiry.
    fn take_out(&mut self, slot: u32) {
        let shard = &mut *self.shard;
        let Some(record) = shard.records.get(slot) else { return };
        let hash = self.hasher.index_hash(record.namespace(), record.key());
        let waited_for = record.is_waited_for();
        self.capacity.release(&mut shard.room, &record);
        if waited_for {
            self.deferred.woken.extend(shard.waiters.take(slot));
        }
        shard.index_remove(hash, slot);
        self.deferred.extras.extend(shard.records.remove(slot).map(|extra| *extra));
        shard.shrink();
    }

    /// Removes up to `limit` expired records, visiting no more than `budget`. Returns how many, and whether it is
    /// certain that no other has expired.
    pub(in crate::store::memory) fn expire(&mut self, limit: usize, mut budget: usize) -> (usize, bool) {
        let mut removed = 0;
        while removed < limit {
            let Some(slot) = self.shard.next_expired(self.now, &mut budget) else {
                return (removed, budget > 0);
            };
            self.shard.records.slots.new_ticket(slot);
            self.take_out(slot);
            removed += 1;
        }
        (removed, false)
    }

    /// Returns when the released record that would be removed next for room expires.
    pub(in crate::store::memory) fn oldest_released(&mut self) -> Option<u64> {
        let slot = self.shard.oldest_released()?;
        Some(self.record(slot).expires())
    }

    /// Removes the released record that would expire first; returns whether there was one.
    pub(in crate::store::memory) fn drop_released(&mut self) -> bool {
        let oldest = self.shard.oldest_released();
        if let Some(slot) = oldest {
            self.remove(slot);
        }
        oldest.is_some()
    }

    /// Gives back the room that the shard has in advance; returns whether that was anything of what is missing.
    pub(in crate::store::memory) fn collect_room(&mut self, missing: Full) -> bool {
        self.capacity.collect(&mut self.shard.room, missing)
    }

    /// Collects the waiters of a record, to be woken once the shard is unlocked.
    #[cold]
    fn wake(&mut self, slot: u32) {
        self.shard.records.set_waited_for(slot, false);
        let notify = self.shard.waiters.take(slot);
        self.deferred.woken.extend(notify);
    }
}
