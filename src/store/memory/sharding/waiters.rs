//! Who waits for a record, by its slot.
//!
//! It is part of a shard and changes only under its lock. Wakers are never called here: the caller collects what it
//! takes out and notifies it once the shard is unlocked.

use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::{Notify, futures::OwnedNotified};

/// The waiters for a change, by the slot of their record. Most records have none.
#[derive(Default)]
pub(in crate::store::memory) struct SlotWaiters(BTreeMap<u32, SlotWait>);

/// The waiters of one record.
#[derive(Default)]
struct SlotWait {
    /// How many there are; the last one that leaves removes the rest.
    count: usize,
    notify: Arc<Notify>,
}

impl SlotWaiters {
    /// Adds a waiter. The returned future is notified of every change from now on, polled or not.
    pub(in crate::store::memory) fn join(&mut self, slot: u32) -> (Arc<Notify>, OwnedNotified) {
        let wait = self.0.entry(slot).or_default();
        wait.count += 1;
        (Arc::clone(&wait.notify), Arc::clone(&wait.notify).notified_owned())
    }

    /// Removes a waiter, and returns whether it was the last one.
    pub(in crate::store::memory) fn leave(&mut self, slot: u32, notify: &Arc<Notify>) -> bool {
        let Some(wait) = self.0.get_mut(&slot).filter(|wait| Arc::ptr_eq(&wait.notify, notify)) else {
            return false;
        };
        wait.count -= 1;
        let last = wait.count == 0;
        if last {
            self.0.remove(&slot);
        }
        last
    }

    /// Removes all waiters of a slot, to be woken by the caller.
    pub(in crate::store::memory) fn take(&mut self, slot: u32) -> Option<Arc<Notify>> {
        self.0.remove(&slot).map(|wait| wait.notify)
    }

    #[cfg(test)]
    pub(in crate::store::memory) fn len(&self) -> usize {
        self.0.len()
    }
}
