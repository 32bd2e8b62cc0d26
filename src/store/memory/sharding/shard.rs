//! One part of the records. It keeps no rule; `ShardGuard` decides when what changes.

use crate::{
    store::memory::{
        capacity::Room,
        record::{RecordChange, RecordView, Records},
        storage::Slots,
    },
    value::State,
};

use super::{expiries::Expiries, hashed_key::HashedKey, index::Index, waiters::SlotWaiters};

/// Slots up to this many are kept when no record is left.
const KEPT_SLOTS: u32 = 256;

/// A part of the records, with a lock of its own.
pub(in crate::store::memory) struct Shard {
    /// The slots by the hash of namespace and key.
    index: Index,
    pub(in crate::store::memory) records: Records,
    /// Released records have an order of their own, which gives the next one to remove if room is short.
    timers: Expiries,
    /// The expiries of released records.
    released: Expiries,
    /// The waiters of this shard's records.
    pub(in crate::store::memory) waiters: SlotWaiters,
    /// The room that it has in advance.
    pub(in crate::store::memory) room: Room,
    /// The latest time that any call came with.
    pub(in crate::store::memory) now: u64,
    /// How many calls the shard has had.
    pub(in crate::store::memory) calls: usize,
}

impl Shard {
    /// Creates an empty shard, which has allocated nothing yet.
    pub(in crate::store::memory) fn new() -> Self {
        Self {
            index: Index::default(),
            records: Records::default(),
            timers: Expiries::new(),
            released: Expiries::new(),
            waiters: SlotWaiters::default(),
            room: Room::default(),
            now: 0,
            calls: 0,
        }
    }

    /// Returns the slot of a key and when its record expires, which may have been.
    #[inline]
    pub(in crate::store::memory) fn find(&self, hashed: &HashedKey<'_>) -> Option<(u32, u64)> {
        let key = hashed.key.as_bytes();
        self.index.find(hashed.hash, |slot| Some((slot, self.records.expires_if(slot, hashed.namespace, key)?)))
    }

    /// Returns the record in a slot that has one.
    #[inline]
    pub(in crate::store::memory) fn record(&self, slot: u32) -> RecordView<'_> {
        match self.records.get(slot) {
            Some(record) => record,
            None => unreachable!("slot {slot} is free"),
        }
    }

    /// Adds a record to the index, and to the order of expiry.
    pub(in crate::store::memory) fn enter(&mut self, hash: u32, slot: u32, state: State, expires: u64) {
        self.index.insert(hash, slot);
        self.schedule(slot, state, expires);
    }

    /// Removes a slot from the index.
    pub(in crate::store::memory) fn index_remove(&mut self, hash: u32, slot: u32) {
        self.index.remove(hash, slot);
    }

    /// Frees what a shard without records does not need.
    pub(in crate::store::memory) fn shrink(&mut self) {
        if self.records.slots.used() == 0 && self.records.slots.end() > KEPT_SLOTS {
            self.records.slots = Slots::default();
            self.timers = Expiries::new();
            self.released = Expiries::new();
        }
    }

    /// Adds a record to the order of its state.
    fn schedule(&mut self, slot: u32, state: State, expires: u64) {
        let (order, slots) = self.order(state);
        order.insert(expires, slot, slots);
    }

    /// Moves a record that has changed to its new place.
    #[inline]
    pub(in crate::store::memory) fn reschedule(&mut self, slot: u32, change: &RecordChange) {
        let [was, is] = [&change.before, &change.after].map(|summary| summary.weight.state);
        let moves = (was == State::Released) != (is == State::Released);
        // A record that expires later than its place says is moved once its turn comes.
        if moves || change.after.expires < change.before.expires {
            self.unschedule(slot, was);
            self.schedule(slot, is, change.after.expires);
        }
    }

    /// Removes a record from the order that it was put into in the state `state`.
    pub(in crate::store::memory) fn unschedule(&mut self, slot: u32, state: State) {
        let (order, slots) = self.order(state);
        order.remove(slot, slots);
    }

    /// Returns the order of expiry for a state.
    fn order(&mut self, state: State) -> (&mut Expiries, &mut Slots) {
        let order = if state == State::Released { &mut self.released } else { &mut self.timers };
        (order, &mut self.records.slots)
    }

    /// Returns an expired record of either order, if `budget` suffices to find one. It is in no order any more.
    #[inline]
    pub(in crate::store::memory) fn next_expired(&mut self, now: u64, budget: &mut usize) -> Option<u32> {
        let due = self.next_expired_of(State::Running, now, budget);
        due.or_else(|| self.next_expired_of(State::Released, now, budget))
    }

    #[inline]
    fn next_expired_of(&mut self, order: State, now: u64, budget: &mut usize) -> Option<u32> {
        loop {
            let (due, slots) = self.order(order);
            let slot = due.pop_due(now, slots, budget)?;
            let record = self.record(slot);
            let (state, expires) = (record.state(), record.expires());
            let (due, slots) = self.order(order);
            if (state == State::Released) != (order == State::Released) {
                // A ticket that came back: the record has its item in the other order.
                due.keep_count();
            } else if expires > now {
                due.insert(expires, slot, slots);
            } else {
                return Some(slot);
            }
        }
    }

    /// Returns the released record that is removed next if room is short.
    pub(in crate::store::memory) fn oldest_released(&mut self) -> Option<u32> {
        loop {
            let slot = self.released.first(&self.records.slots)?;
            if self.record(slot).state() == State::Released {
                return Some(slot);
            }
            self.released.skip();
        }
    }

    /// Returns how many records are running, including abandoned ones.
    pub(in crate::store::memory) fn running(&self) -> usize {
        let records = (0..self.records.slots.end()).filter_map(|slot| self.records.get(slot));
        records.filter(|record| record.state() == State::Running && record.expires() > self.now).count()
    }

    #[cfg(test)]
    pub(in crate::store::memory) fn index_places(&self) -> usize {
        self.index.places()
    }
}
