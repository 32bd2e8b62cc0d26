//! Waiting for a running record, in this process.
//!
//! Waiters of one record share a `WaitedRecord`. One of them reads the record for all (`is_first`), in a task of its own; an
//! end that this process causes wakes them at once. A result counts for a waiter only if its read began after the
//! waiter came, since the record may have changed between the claim and the wait.
//!
//! The map is locked before a record's own lock, never the other way round.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use crate::value::StoreErrorKind;

/// The waiters of this process, by record, so that a claim that ends in this process finds them. Waiters of one record
/// share one read at a time.
#[derive(Default)]
pub(in crate::sql) struct RecordWaiters(Mutex<HashMap<Vec<u8>, Arc<WaitedRecord>>>);

/// A record that has waiters.
#[derive(Default)]
pub(in crate::sql) struct WaitedRecord {
    /// Who waits, and whether a read is due.
    waiting: Mutex<WaitState>,
    /// The latest result, which wakes the waiters.
    news: watch::Sender<Update>,
    /// Notified when the last waiter leaves, so that the reads end.
    left: Notify,
}

/// The waiters of a record and the reads that are made for them.
#[derive(Default)]
struct WaitState {
    count: usize,
    /// Whether a waiter is reading the record.
    is_read: bool,
    /// How many reads have begun.
    reads: u64,
    /// Whether a waiter has come since the last read began, and waits for a later one.
    newcomers: bool,
}

/// What is known of a record.
#[derive(Clone, Default)]
struct Update {
    /// The number of the read that has found it.
    read: u64,
    found: Option<ClaimStatus>,
    /// How often this process has ended a claim in the meantime.
    ends: u64,
}

/// The result of a read.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::sql) enum ClaimStatus {
    /// The claim of this claimant is running.
    Running(Vec<u8>),
    /// No claim is running, or this process has just ended one.
    Ended,
    Failed(StoreErrorKind, String),
}

impl RecordWaiters {
    /// Wakes all waiters of a record whose claim has ended in this process.
    pub(in crate::sql) fn wake(&self, id: &[u8]) {
        let watched = self.lock().get(id).map(Arc::clone);
        if let Some(watched) = watched {
            watched.news.send_modify(|news| news.ends += 1);
        }
    }

    /// Waits for the end of a claim in this process, for at most `within`.
    pub(in crate::sql) async fn wait(&self, id: &[u8], within: Duration) {
        let mut waiter = self.join(id);
        let ended = async {
            while waiter.news() != Some(ClaimStatus::Ended) {
                waiter.changed().await;
            }
        };
        let _ = timeout(within, ended).await;
    }

    /// Registers a waiter.
    pub(in crate::sql) fn join<'a>(&'a self, id: &[u8]) -> RecordWaiter<'a> {
        let mut all = self.lock();
        let watched = Arc::clone(all.entry(id.to_vec()).or_default());
        let news = watched.news.subscribe();
        let ends = news.borrow().ends;
        let mut waiting = watched.lock();
        waiting.count += 1;
        waiting.newcomers = true;
        let after = waiting.reads;
        drop(waiting);
        RecordWaiter { waiters: self, id: id.to_vec(), watched, news, after, ends }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Arc<WaitedRecord>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitedRecord {
    /// Begins a read, if there are waiters; returns whether there are newcomers.
    pub(in crate::sql) fn begin(&self) -> Option<bool> {
        let mut waiting = self.lock();
        if waiting.count == 0 {
            return None;
        }
        waiting.reads += 1;
        Some(std::mem::take(&mut waiting.newcomers))
    }

    /// Publishes the result of the read that was begun last. If nothing is new, only newcomers need to be notified.
    pub(in crate::sql) fn end(&self, found: ClaimStatus, newcomers: bool) {
        let read = self.lock().reads;
        let found = Some(found);
        self.news.send_if_modified(|news| {
            news.read = read;
            let modified = news.found != found;
            news.found = found;
            modified || newcomers
        });
    }

    /// Resolves once the last waiter has left.
    pub(in crate::sql) async fn left(&self) {
        self.left.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, WaitState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waiter's registration, removed when it is dropped.
pub(in crate::sql) struct RecordWaiter<'a> {
    waiters: &'a RecordWaiters,
    id: Vec<u8>,
    watched: Arc<WaitedRecord>,
    news: watch::Receiver<Update>,
    /// The results of reads up to this number are older than this registration.
    after: u64,
    ends: u64,
}

impl RecordWaiter<'_> {
    /// Returns whether the record is not being read yet. The first caller has to read it.
    pub(in crate::sql) fn is_first(&self) -> bool {
        !std::mem::replace(&mut self.watched.lock().is_read, true)
    }

    /// Returns what the waiters of this record share.
    pub(in crate::sql) fn watched(&self) -> &Arc<WaitedRecord> {
        &self.watched
    }

    /// Returns what has become known since this registration.
    pub(in crate::sql) fn news(&mut self) -> Option<ClaimStatus> {
        let news = self.news.borrow_and_update();
        if news.ends != self.ends {
            return Some(ClaimStatus::Ended);
        }
        if news.read > self.after { news.found.clone() } else { None }
    }

    /// Resolves once more is known.
    pub(in crate::sql) async fn changed(&mut self) {
        // The sender is in `watched`, so it exists as long as this registration.
        let _ = self.news.changed().await;
    }
}

impl Drop for RecordWaiter<'_> {
    fn drop(&mut self) {
        let mut all = self.waiters.lock();
        let mut waiting = self.watched.lock();
        waiting.count -= 1;
        if waiting.count == 0 {
            all.remove(&self.id);
            self.watched.left.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_up() {
        let waiters = RecordWaiters::default();
        let (one, other) = (waiters.join(b"a"), waiters.join(b"a"));
        assert!(one.is_first() && !other.is_first());
        let watched = Arc::clone(one.watched());
        drop(one);
        assert!(waiters.lock().len() == 1 && watched.begin().is_some());
        drop(other);
        assert!(waiters.lock().is_empty() && watched.begin().is_none());
        waiters.wake(b"a");
    }

    #[test]
    fn a_look_that_began_before_somebody_came_tells_that_one_nothing() {
        let waiters = RecordWaiters::default();
        let mut early = waiters.join(b"a");
        assert_eq!(early.watched().begin(), Some(true));
        let mut late = waiters.join(b"a");
        early.watched().end(ClaimStatus::Ended, true);
        assert!(early.news() == Some(ClaimStatus::Ended) && late.news().is_none());
        assert_eq!(late.watched().begin(), Some(true));
        late.watched().end(ClaimStatus::Running(vec![1]), true);
        assert!(late.news() == Some(ClaimStatus::Running(vec![1])));
        assert_eq!(late.watched().begin(), Some(false));
    }

    #[test]
    fn an_end_in_this_process_counts_for_those_who_wait() {
        let waiters = RecordWaiters::default();
        let mut early = waiters.join(b"a");
        waiters.wake(b"a");
        let mut late = waiters.join(b"a");
        assert!(early.news() == Some(ClaimStatus::Ended) && late.news().is_none());
    }
}
