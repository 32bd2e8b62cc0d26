//! Waiting for the end of a running record, without polling.
//!
//! A waiter registers under the lock of the shard and receives every change from then on, whether its future is polled
//! or not. So a change between a claim and the wait is not lost. The entry has a flag for waiters, so that a record
//! without any costs no lookup.

use std::{pin::pin, sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, futures::OwnedNotified},
    time::{Instant, timeout},
};

use crate::value::{Claimant, StoreError};

use super::sharding::{HashedKey, Memory};

/// The shortest pause between two checks whether a record that should have expired is gone.
const RECHECK_PAUSE: Duration = Duration::from_secs(1);

/// A waiter's registration, removed when it is dropped.
pub(super) struct SlotWatch<'a> {
    memory: &'a Memory,
    shard: usize,
    /// The slot of the record. It may have another record by the time of the drop; `notify` distinguishes the two.
    slot: u32,
    notify: Arc<Notify>,
    /// How long the record exists unless it changes.
    left: Duration,
}

impl<'a> SlotWatch<'a> {
    /// Watches the record, if it is running under `holder`.
    pub(super) fn new(memory: &'a Memory, hashed: &HashedKey<'_>, holder: Claimant) -> Option<(Self, OwnedNotified)> {
        let (slot, left, (notify, woken)) = memory.guard(hashed.shard, memory.now()).watch(hashed, holder)?;
        Some((Self { memory, shard: hashed.shard, slot, notify, left }, woken))
    }
}

impl Drop for SlotWatch<'_> {
    fn drop(&mut self) {
        let mut shard = self.memory.lock(self.shard);
        if shard.waiters.leave(self.slot, &self.notify) {
            shard.records.set_waited_for(self.slot, false);
        }
    }
}

/// Waits until the record is no longer running under `holder`, but not longer than `within`.
///
/// Expiry wakes nobody, since nothing happens at that moment. So the wait ends at the latest when the record should be
/// gone, and looks again.
pub(super) async fn wait(
    memory: &Memory,
    hashed: HashedKey<'_>,
    holder: Claimant,
    within: Duration,
    mut watch: (SlotWatch<'_>, OwnedNotified),
) -> Result<(), StoreError> {
    let began = Instant::now();
    loop {
        let left = within.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Ok(());
        }
        let (registration, woken) = watch;
        if timeout(left.min(registration.left.max(RECHECK_PAUSE)), pin!(woken)).await.is_ok() {
            return Ok(());
        }
        drop(registration);
        // The record may have expired by now, or been renewed.
        match SlotWatch::new(memory, &hashed, holder) {
            Some(again) => watch = again,
            None => return Ok(()),
        }
    }
}
