//! The duplicates of one key share what the store is asked.
//!
//! The first that joins creates a `Crowd`, the last that leaves removes it. Each of them waits for the store's
//! `changed`; which one claims next is decided by a time under a lock (`Next::at`), so that one asks and the others go
//! on waiting for it. The one that asks may be dropped at any time: the others wait for it no longer than the limit of
//! a call.

use std::{
    collections::HashMap,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use tokio::{sync::watch, time::Instant};

use super::BodyPermit;
use crate::{
    engine::timer::later,
    value::{Backoff, RecordKey},
};

/// The pause before asking a store again that could not be waited at: the first one, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));

/// The waiting duplicates of this process, by key. One of those that wait for a key asks the store for all of them, so
/// that many cost no more statements than one.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    keys: Mutex<HashMap<RecordKey, Arc<Crowd>>>,
}

/// The duplicates that wait for one key.
#[derive(Debug)]
struct Crowd {
    next: Mutex<Next>,
    /// The signal that one of them saw the end of what they wait for.
    ended: watch::Sender<()>,
}

/// The time at which one of them asks again.
#[derive(Debug)]
struct Next {
    at: Instant,
    backoff: Backoff,
    /// The time at which one of them asked last.
    asked: Instant,
}

/// A duplicate that waits.
pub(crate) struct Waiter<'a> {
    waiters: &'a Waiters,
    pub(in crate::engine) key: &'a RecordKey,
    crowd: Arc<Crowd>,
    ended: watch::Receiver<()>,
    _body: BodyPermit,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiters {
    /// Begins to wait for `key`, with room for the body.
    pub(crate) fn join<'a>(&'a self, key: &'a RecordKey, body: BodyPermit) -> Waiter<'a> {
        let mut keys = locked(&self.keys);
        let crowd = keys.entry(key.clone()).or_insert_with(|| {
            let now = Instant::now();
            let next = Mutex::new(Next { at: now, backoff: Backoff::new(PAUSES.0, PAUSES.1), asked: now });
            Arc::new(Crowd { next, ended: watch::Sender::new(()) })
        });
        let crowd = Arc::clone(crowd);
        let ended = crowd.ended.subscribe();
        Waiter { waiters: self, key, crowd, ended, _body: body }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut keys = locked(&self.waiters.keys);
        // One in the map, and this one's own.
        if Arc::strong_count(&self.crowd) == 2 {
            keys.remove(self.key);
        }
    }
}

impl Waiter<'_> {
    /// Records that the store was asked, and need not be asked again for `left`.
    pub(crate) fn is_running(&self, left: Duration) {
        let mut next = locked(&self.crowd.next);
        // A store that rounds down says zero shortly before the end.
        next.at = later(left.max(Duration::from_millis(1)));
        next.asked = Instant::now();
    }

    /// Records that what all of them wait for has ended.
    pub(crate) fn has_ended(&self) {
        self.crowd.ended.send_replace(());
    }

    /// Has the store asked after a pause, which grows each time, since the store does not report a change.
    pub(in crate::engine) fn ask_after_a_pause(&self) {
        let mut next = locked(&self.crowd.next);
        let at = Instant::now() + next.backoff.coming();
        if at < next.at {
            next.at = at;
            next.backoff.pause();
        }
    }

    pub(in crate::engine) fn next(&self) -> Instant {
        locked(&self.crowd.next).at
    }

    /// Returns what `future` returns; `None` if one of those who wait has seen the end before.
    pub(in crate::engine) async fn unless_ended<F: Future>(&mut self, future: F) -> Option<F::Output> {
        let (mut ended, mut future) = (pin!(self.ended.changed()), pin!(future));
        poll_fn(|cx| match ended.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(cx).map(Some),
        })
        .await
    }

    /// Returns whether this one is to ask the store now. The others give it `limit` to do so.
    pub(in crate::engine) fn is_to_ask(&self, limit: Duration) -> bool {
        let mut next = locked(&self.crowd.next);
        let now = Instant::now();
        let due = next.at <= now;
        if due {
            next.asked = now;
            next.at = later(limit);
        }
        due
    }

    /// Returns whether this one, whose time is over, is to ask once more: the store may not have reported the end. Of
    /// those whose time ends together, one does.
    pub(in crate::engine) fn is_to_ask_at_last(&self) -> bool {
        let mut next = locked(&self.crowd.next);
        let now = Instant::now();
        let long_ago = now.saturating_duration_since(next.asked) >= PAUSES.0;
        if long_ago {
            next.asked = now;
        }
        long_ago
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::WaitingBodies;

    fn key(text: &str) -> RecordKey {
        RecordKey::new("/", None, text).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_those_who_wait_for_a_key_asks() {
        let (waiters, key, other) = (Waiters::default(), key("a"), key("b"));
        let bodies = WaitingBodies::new(0);
        let body = || bodies.hold(0).unwrap();
        let crowd: Vec<_> = (0..3).map(|_| waiters.join(&key, body())).collect();
        let elsewhere = waiters.join(&other, body());
        crowd[0].is_running(Duration::from_secs(3));
        assert!(crowd.iter().all(|waiter| !waiter.is_to_ask(PAUSES.1)));
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(crowd.iter().filter(|waiter| waiter.is_to_ask(PAUSES.1)).count(), 1);
        assert!(elsewhere.is_to_ask(PAUSES.1));
        // The one that asks may never come back.
        tokio::time::advance(PAUSES.1).await;
        assert_eq!(crowd.iter().filter(|waiter| waiter.is_to_ask(PAUSES.1)).count(), 1);
    }

    #[test]
    fn nothing_is_left_of_those_who_waited() {
        let (waiters, key) = (Waiters::default(), key("a"));
        let bodies = WaitingBodies::new(0);
        let body = || bodies.hold(0).unwrap();
        let (first, second) = (waiters.join(&key, body()), waiters.join(&key, body()));
        drop(first);
        assert_eq!(locked(&waiters.keys).len(), 1);
        drop(second);
        assert!(locked(&waiters.keys).is_empty());
    }
}
