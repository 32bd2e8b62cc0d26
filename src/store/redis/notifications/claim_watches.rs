//! The claims of a process that have waiters.
//!
//! Waiters of one claim share a `ClaimWatch`, and with it the task that watches the record. The map has weak references, so
//! the last waiter that leaves ends the task. Places are dropped only while the map is unlocked, since dropping one
//! locks it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use redis::{PushInfo, PushKind, Value};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};

use crate::{store::redis::error::CommandError, value::Claimant};

/// What is known of a claim that has waiters.
#[derive(Clone)]
pub(super) enum WatchStatus {
    Running,
    Ended,
    Failed(CommandError),
}

/// A claim and its waiters in this process: one task watches the claim for all of them.
pub(super) struct ClaimWatch {
    watches: Arc<ClaimWatches>,
    name: Vec<u8>,
    holder: Claimant,
    /// What the watching task has found.
    status: watch::Receiver<WatchStatus>,
    /// Notified by a message about the record.
    message: Arc<Notify>,
    /// The watching task, which ends with the last waiter.
    watcher: AbortHandle,
}

impl ClaimWatch {
    /// Waits until the claim is no longer running.
    pub(super) async fn ended(&self) -> Result<(), CommandError> {
        let mut status = self.status.clone();
        match status.wait_for(|status| !matches!(status, WatchStatus::Running)).await.as_deref() {
            Ok(WatchStatus::Failed(error)) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Returns whether the task still watches.
    fn is_running(&self) -> bool {
        matches!(*self.status.borrow(), WatchStatus::Running)
    }
}

/// Runs when the last waiter has left.
impl Drop for ClaimWatch {
    fn drop(&mut self) {
        self.watcher.abort();
        let mut all = self.watches.lock();
        if let Some(claims) = all.get_mut(&self.name) {
            claims.retain(|claim| claim.strong_count() > 0);
            if claims.is_empty() {
                all.remove(&self.name);
            }
        }
    }
}

/// The claims that have waiters, by the names of their records, so that a message finds its waiters.
#[derive(Default)]
pub(super) struct ClaimWatches(Mutex<HashMap<Vec<u8>, Vec<Weak<ClaimWatch>>>>);

impl ClaimWatches {
    /// Locks the map. It is held for one operation.
    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<Weak<ClaimWatch>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place of a claim; `watch` begins to watch it if it is not watched yet.
    ///
    /// A place whose watcher has ended is not used again: what it knows is final.
    pub(super) fn join(
        self: &Arc<Self>,
        name: &[u8],
        holder: Claimant,
        watch: impl FnOnce(watch::Sender<WatchStatus>, Arc<Notify>) -> AbortHandle,
    ) -> Arc<ClaimWatch> {
        // Dropped after the places are unlocked: dropping a place locks them.
        let mut live = Vec::new();
        let mut all = self.lock();
        let claims = all.entry(name.to_owned()).or_default();
        live.extend(claims.iter().filter_map(Weak::upgrade));
        if let Some(found) = live.iter().find(|found| found.holder == holder && found.is_running()) {
            return Arc::clone(found);
        }
        let (sender, status) = watch::channel(WatchStatus::Running);
        let message = Arc::new(Notify::new());
        let watcher = watch(sender, Arc::clone(&message));
        let found = ClaimWatch { watches: Arc::clone(self), name: name.to_owned(), holder, status, message, watcher };
        let found = Arc::new(found);
        claims.push(Arc::downgrade(&found));
        found
    }

    /// Hands a message to the waiters of its record, or wakes all after a disconnection.
    pub(super) fn on_push(&self, push: &PushInfo) {
        let all = match (&push.kind, &*push.data) {
            (PushKind::Message | PushKind::SMessage, [_, Value::BulkString(name)]) => self.of(name),
            // No message is received until a channel is subscribed again, so all records have to be read.
            (PushKind::Disconnection, _) => self.lock().values().flatten().filter_map(Weak::upgrade).collect(),
            _ => return,
        };
        for claim in all {
            claim.message.notify_waiters();
        }
    }

    /// Returns the places of a name. None of them is dropped while the places are locked.
    fn of(&self, name: &[u8]) -> Vec<Arc<ClaimWatch>> {
        self.lock().get(name).map_or_else(Vec::new, |claims| claims.iter().filter_map(Weak::upgrade).collect())
    }
}
