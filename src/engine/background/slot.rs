//! The places of background tasks in the counts, and the report of those that do not end by themselves.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::Bucket;
use crate::value::DropReason;

/// How much is in the background now. Clones of `BackgroundTasks` share it.
#[derive(Default)]
pub(super) struct TaskCounts {
    pub(super) work: AtomicUsize,
    pub(super) releases: AtomicUsize,
    /// How many unfinished operations each party has left behind.
    pub(super) parties: Mutex<HashMap<Bucket, usize>>,
    pub(super) ended: Notify,
}

impl TaskCounts {
    pub(super) fn parties(&self) -> MutexGuard<'_, HashMap<Bucket, usize>> {
        self.parties.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A background task's place in the counts, given back however the background task ends: also with a runtime that shuts
/// down.
pub(super) struct TaskSlot {
    pub(super) shared: Arc<TaskCounts>,
    /// The party whose work it is; `None` for the release of a claim.
    pub(super) of: Option<Bucket>,
}

impl Drop for TaskSlot {
    fn drop(&mut self) {
        let count = match &self.of {
            None => &self.shared.releases,
            Some(bucket) => {
                let mut parties = self.shared.parties();
                if let Some(own) = parties.get_mut(bucket) {
                    *own -= 1;
                    if *own == 0 {
                        parties.remove(bucket);
                    }
                }
                &self.shared.work
            }
        };
        if count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.shared.ended.notify_waiters();
        }
    }
}

/// A guard that reports a background task dropped before its end: its time was over, or its runtime has shut down.
pub(super) struct Unfinished<F: FnOnce(DropReason, Duration)> {
    dropped: Option<F>,
    since: Instant,
}

impl<F: FnOnce(DropReason, Duration)> Unfinished<F> {
    pub(super) fn new(dropped: F) -> Self {
        Self { dropped: Some(dropped), since: Instant::now() }
    }

    pub(super) fn finish(&mut self) {
        self.dropped = None;
    }

    pub(super) fn tell(&mut self, reason: DropReason) {
        if let Some(dropped) = self.dropped.take() {
            dropped(reason, self.since.elapsed());
        }
    }
}

impl<F: FnOnce(DropReason, Duration)> Drop for Unfinished<F> {
    fn drop(&mut self) {
        // Who sees a panic has ended the claim, or left it to its lease.
        if !std::thread::panicking() {
            self.tell(DropReason::Shutdown);
        }
    }
}
