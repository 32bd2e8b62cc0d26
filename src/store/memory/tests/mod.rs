//! The memory store beside a simple model, and under threads, without room, and at the edges of time.

#![allow(clippy::needless_pass_by_value)] // names are numbers and texts

mod capacity;
mod model;
mod outside;
mod room;
mod rules;
mod shares;
mod threads;
mod time;
mod tokens;
mod waiting;

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use super::{Clock, MemoryStore};
use crate::{
    store::{Claimed, Finished, Granted, Issued, Store, StoreAdmin, StoreFuture},
    value::{
        Binding, Caller, Claim, Claimant, Fingerprint, Issue, Record, RecordKey, Release, Settlement, State, StoreError,
    },
};
pub(super) use model::Random;

/// 2026, in a moment that is not a round number.
const START: u64 = 1_795_960_123_457;
const DAY: Duration = Duration::from_secs(86_400);

#[derive(Clone)]
struct Manual(Arc<AtomicU64>);

impl Manual {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(START)))
    }

    fn pass(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Manual {
    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn store() -> (MemoryStore, Manual) {
    sized(1_000_000)
}

fn sized(capacity: usize) -> (MemoryStore, Manual) {
    let clock = Manual::new();
    (MemoryStore::builder().capacity(capacity).clock(clock.clone()).build(), clock)
}

/// The answer, which a memory store has at once.
fn try_now<T: Unpin>(future: StoreFuture<'_, T>) -> Result<T, StoreError> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("not ready"),
    }
}

fn now<T: Unpin>(future: StoreFuture<'_, T>) -> T {
    try_now(future).unwrap()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn key(name: impl ToString) -> RecordKey {
    RecordKey::new("/orders", None, &name.to_string()).unwrap()
}

fn claim(lease: u64, horizon: u64) -> Claim {
    Claim::new(ms(lease), ms(horizon))
}

fn number(number: u8) -> Fingerprint {
    Fingerprint::from_parts(1, [number; 32])
}

/// What a claim is granted whose caller is nobody, and whose record is.
fn granted(attempt: u32) -> Claimed {
    Claimed::Granted(Granted { attempt, ..Granted::first(&claim(0, 0)) })
}

fn taken_over(attempt: u32) -> Claimed {
    Claimed::Granted(Granted { attempt, takeover: true, ..Granted::first(&claim(0, 0)) })
}

fn caller(number: u8) -> Caller {
    Caller::from_parts(1, [number; 16])
}

fn undo(claimant: Claimant, keep: u64) -> Release {
    Release::undo(claimant, ms(keep))
}

fn settlement(claimant: Claimant, retention: u64) -> Settlement {
    Settlement::new(claimant, Some("answer".into()), ms(retention))
}

fn release(claimant: Claimant, keep: u64) -> Release {
    Release::new(claimant, ms(keep))
}

fn token(store: &MemoryStore, name: &str, life: u64) -> Binding {
    let binding = Binding::new("order", Some("ann"));
    assert_eq!(now(store.issue(&key(name), &Issue::new(binding.clone(), ms(life)))), Issued::Done);
    binding
}

fn refused(finished: &Finished) -> Option<State> {
    match finished {
        Finished::Refused(record) => record.as_ref().map(|record| record.state),
        other => panic!("{other:?}"),
    }
}

impl MemoryStore {
    fn grant(&self, name: impl ToString, lease: u64, horizon: u64) -> Claim {
        let claim = claim(lease, horizon);
        let granted = now(self.claim(&key(name), &claim));
        assert!(matches!(granted, Claimed::Granted(_)), "{granted:?}");
        claim
    }

    fn settled(&self, name: impl ToString, retention: u64) -> Claim {
        let claim = self.grant(name.to_string(), 1000, 1000);
        let settled = now(self.settle(&key(name), &settlement(claim.claimant, retention)));
        assert!(matches!(settled, Finished::Done), "{settled:?}");
        claim
    }

    fn released(&self, name: impl ToString, keep: u64) -> Claim {
        let claim = self.grant(name.to_string(), 1000, 1000);
        let released = now(self.release(&key(name), &release(claim.claimant, keep)));
        assert!(matches!(released, Finished::Done), "{released:?}");
        claim
    }

    fn record(&self, name: impl ToString) -> Option<Record> {
        now(self.inspect(&key(name)))
    }

    /// Records that take memory, expired or not.
    fn kept(&self) -> usize {
        let memory = &self.memory;
        let kept = (0..memory.shards()).map(|shard| memory.lock(shard).records.slots.used()).sum();
        assert_eq!(memory.used().0, kept);
        kept
    }
}
