//! Waiting for the end of a running record, without polling.
//!
//! A waiter registers under the lock of the shard and receives every change from then on, whether its future is polled
//! or not. So a change between a claim and the wait is not lost. The entry has a flag for waiters, so that a record
//! without any costs no lookup.

use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, futures::OwnedNotified},
    time::{Instant, timeout},
};

use crate::value::{Claimant, StoreError};

use super::shard::{Memory, Name};

/// The shortest pause between two checks whether a record that should have expired is gone.
const AGAIN: Duration = Duration::from_secs(1);

/// The waiters for a change, by the slot of their record. Most records have none.
#[derive(Default)]
pub(super) struct Waiters(BTreeMap<u32, Waiting>);

/// The waiters of one record.
#[derive(Default)]
struct Waiting {
    /// How many there are; the last one that leaves removes the rest.
    count: usize,
    notify: Arc<Notify>,
}

impl Waiters {
    /// Adds a waiter. The returned future is notified of every change from now on, polled or not.
    pub(super) fn enter(&mut self, slot: u32) -> (Arc<Notify>, OwnedNotified) {
        let waiting = self.0.entry(slot).or_default();
        waiting.count += 1;
        (Arc::clone(&waiting.notify), Arc::clone(&waiting.notify).notified_owned())
    }

    /// Removes a waiter, and returns whether it was the last one.
    fn leave(&mut self, slot: u32, notify: &Arc<Notify>) -> bool {
        let Some(waiting) = self.0.get_mut(&slot).filter(|waiting| Arc::ptr_eq(&waiting.notify, notify)) else {
            return false;
        };
        waiting.count -= 1;
        let last = waiting.count == 0;
        if last {
            self.0.remove(&slot);
        }
        last
    }

    /// Removes all waiters of a slot, to be woken by the caller.
    pub(super) fn take(&mut self, slot: u32) -> Option<Arc<Notify>> {
        self.0.remove(&slot).map(|waiting| waiting.notify)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A waiter's registration, removed when it is dropped.
pub(super) struct Watch<'a> {
    memory: &'a Memory,
    shard: usize,
    /// The slot of the record. It may have another record by the time of the drop; `notify` distinguishes the two.
    slot: u32,
    notify: Arc<Notify>,
    /// How long the record exists unless it changes.
    left: Duration,
}

impl<'a> Watch<'a> {
    /// Watches the record, if it is running under `holder`.
    pub(super) fn new(memory: &'a Memory, name: &Name<'_>, holder: Claimant) -> Option<(Self, OwnedNotified)> {
        let (slot, left, (notify, woken)) = memory.enter(name.shard, memory.now()).watch(name, holder)?;
        Some((Self { memory, shard: name.shard, slot, notify, left }, woken))
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut shard = self.memory.lock(self.shard);
        if shard.waiters.leave(self.slot, &self.notify) {
            shard.slab[self.slot].set_waited_for(false);
        }
    }
}

/// Waits until the record is no longer running under `holder`, but not longer than `within`.
///
/// Expiry wakes nobody, since nothing happens at that moment. So the wait ends at the latest when the record should be
/// gone, and looks again.
pub(super) async fn wait(
    memory: &Memory,
    name: Name<'_>,
    holder: Claimant,
    within: Duration,
    mut watch: (Watch<'_>, OwnedNotified),
) -> Result<(), StoreError> {
    let began = Instant::now();
    loop {
        let left = within.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let (place, woken) = watch;
        if timeout(left.min(place.left.max(AGAIN)), pin!(woken)).await.is_ok() {
            return Ok(());
        }
        drop(place);
        // The record may have expired by now, or been renewed.
        match Watch::new(memory, &name, holder) {
            Some(again) => watch = again,
            None => return Ok(()),
        }
    }
}
