use std::sync::{Arc, MutexGuard};

use tokio::sync::Notify;

use crate::value::State;

use super::{
    entry::{Entry, Extra},
    room::Full,
    shard::Shard,
    shards::{Memory, Name},
};

/// A locked shard, and what is to do once it is unlocked. The order of the fields sees to it that the lock goes first.
pub(super) struct Turn<'a> {
    pub(super) shard: MutexGuard<'a, Shard>,
    pub(super) after: After,
    memory: &'a Memory,
    pub(super) now: u64,
}

/// Waiters to wake, and values whose destructors may be the application's.
#[derive(Default)]
pub(super) struct After {
    pub(super) extras: Vec<Extra>,
    pub(super) woken: Vec<Arc<Notify>>,
}

impl Drop for After {
    fn drop(&mut self) {
        for notify in &self.woken {
            notify.notify_waiters();
        }
    }
}

impl<'a> Turn<'a> {
    pub(super) fn new(memory: &'a Memory, mut shard: MutexGuard<'a, Shard>, now: u64) -> Self {
        // Two threads may have read the clock in another order than they got the lock.
        shard.now = shard.now.max(now);
        let now = shard.now;
        Self { shard, after: After::default(), memory, now }
    }

    pub(super) fn count(&mut self) -> usize {
        self.shard.turns = self.shard.turns.wrapping_add(1);
        self.shard.turns
    }

    /// The slot of a record that is there.
    pub(super) fn find(&mut self, name: &Name<'_>) -> Option<u32> {
        let slot = self.shard.find(name)?;
        if self.shard.slab[slot].expires() > self.now {
            return Some(slot);
        }
        self.remove(slot);
        None
    }

    /// Puts a record where none is. One that has expired already needs no room.
    pub(super) fn insert(&mut self, name: &Name<'_>, fill: impl FnOnce(&mut Entry)) -> Result<(), Full> {
        let mut entry = Entry::new(name.namespace, name.key, self.now);
        fill(&mut entry);
        let stays = entry.expires() > self.now;
        let taken = if stays { self.memory.room.take(&entry) } else { Ok(()) };
        if !stays || taken.is_err() {
            self.after.extras.extend(entry.into_extra());
            return taken;
        }
        let slot = self.shard.slab.insert(entry);
        self.shard.enter_index(name.hash, slot);
        self.shard.schedule(slot);
        Ok(())
    }

    /// Takes room for what a record is to grow by.
    pub(super) fn grow(&self, growth: usize) -> Result<(), Full> {
        self.memory.room.grow(growth)
    }

    /// Takes room for a record that is there to run (again), and to grow.
    pub(super) fn rerun(&self, slot: u32, growth: usize) -> Result<(), Full> {
        let (room, entry) = (&self.memory.room, &self.shard.slab[slot]);
        room.grow(growth)?;
        if entry.state() == State::Released {
            room.take_share(entry).inspect_err(|_| room.shrink(growth))?;
        }
        Ok(())
    }

    /// Changes a record, and all that follows from where it stands. There has to be room for what it grows by, at most.
    pub(super) fn change(&mut self, slot: u32, growth: usize, change: impl FnOnce(&mut Entry) -> Option<Extra>) {
        let entry = &mut self.shard.slab[slot];
        let (was, claimant, ended) = (entry.weight(), entry.claimant(), entry.expires());
        self.after.extras.extend(change(entry));
        let changed = (was.state, claimant) != (entry.state(), entry.claimant());
        self.memory.room.changed(entry, was, growth);
        self.shard.reschedule(slot, was.state, ended);
        if changed {
            self.wake(slot);
        }
        if self.shard.slab[slot].expires() <= self.now {
            self.remove(slot);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.wake(slot);
        self.shard.unschedule(slot);
        let Some(entry) = self.shard.slab.remove(slot) else { return };
        let hash = self.memory.index_hash(entry.namespace(), entry.key());
        self.shard.leave_index(hash, slot);
        self.memory.room.give_back(&entry);
        self.after.extras.extend(entry.into_extra());
    }

    /// Removes up to `limit` records that have expired, looking at no more than `budget`. Says how many, and whether it
    /// is sure that no other has expired.
    pub(super) fn expire(&mut self, limit: usize, mut budget: usize) -> (usize, bool) {
        let mut removed = 0;
        while removed < limit {
            let Some(slot) = self.shard.due(self.now, &mut budget) else {
                return (removed, budget > 0);
            };
            self.remove(slot);
            removed += 1;
        }
        (removed, false)
    }

    /// When the released record that is next to go for room would expire.
    pub(super) fn oldest_released(&self) -> Option<u64> {
        Some(self.shard.slab[self.shard.oldest_released()?].expires())
    }

    pub(super) fn drop_released(&mut self) -> bool {
        let oldest = self.shard.oldest_released();
        if let Some(slot) = oldest {
            self.remove(slot);
        }
        oldest.is_some()
    }

    fn wake(&mut self, slot: u32) {
        if self.shard.slab[slot].is_waited_for() {
            self.shard.slab[slot].set_waited_for(false);
            let notify = self.shard.waiters.take(slot);
            self.after.woken.extend(notify);
        }
    }
}
