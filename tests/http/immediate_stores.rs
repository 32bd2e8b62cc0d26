//! Stores that answer at once, and those that only say so.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{Router, routing::post};
use http::StatusCode;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, StoreError,
    store::{
        Claim, Claimant, Claimed, Finished, Issue, Issued, RecordKey, Release, Renewed, Settlement, Store,
        StoreErrorKind, StoreFuture,
    },
};

use crate::common::post as request;

/// How a store breaks the promise of `is_immediate`, or fails.
#[derive(Clone, Copy, PartialEq)]
enum Habit {
    /// Its answers have to be awaited.
    Awaited,
    /// Its first claim takes effect and fails.
    FailsAfterTheFirstClaim,
    /// Its first settlement fails, for a while.
    FailsToSettleOnce,
    /// It takes tombstones only.
    TakesNoAnswer,
}

#[derive(Clone)]
struct SaysImmediate {
    inner: MemoryStore,
    habit: Habit,
    claimants: Arc<Mutex<Vec<Claimant>>>,
    settled: Arc<AtomicUsize>,
}

impl SaysImmediate {
    fn new(habit: Habit) -> Self {
        Self { inner: MemoryStore::new(), habit, claimants: Arc::default(), settled: Arc::default() }
    }

    fn app(&self) -> (Router, Arc<AtomicUsize>) {
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = runs.clone();
        let handler = move || async move {
            counted.fetch_add(1, SeqCst);
            (StatusCode::CREATED, "ordered")
        };
        let layer = IdempotencyLayer::new(self.clone()).unscoped();
        (Router::new().route("/orders", post(handler).layer(layer)), runs)
    }
}

impl Store for SaysImmediate {
    fn is_immediate(&self) -> bool {
        true
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        self.inner.issue(key, issue)
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        let mut claimants = self.claimants.lock().unwrap();
        claimants.push(claim.claimant);
        let answer = self.inner.claim(key, claim);
        match self.habit {
            Habit::Awaited => StoreFuture::new(answer),
            Habit::FailsAfterTheFirstClaim if claimants.len() == 1 => {
                StoreFuture::ready(Err(StoreError::new(StoreErrorKind::Unavailable, "away")))
            }
            Habit::FailsAfterTheFirstClaim | Habit::FailsToSettleOnce | Habit::TakesNoAnswer => answer,
        }
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        self.inner.renew(key, claim)
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        let first = self.settled.fetch_add(1, SeqCst) == 0;
        match self.habit {
            Habit::Awaited => StoreFuture::new(self.inner.settle(key, settlement)),
            Habit::FailsToSettleOnce if first => {
                StoreFuture::ready(Err(StoreError::new(StoreErrorKind::Unavailable, "away")))
            }
            Habit::TakesNoAnswer if settlement.payload.is_some() => {
                StoreFuture::ready(Err(StoreError::new(StoreErrorKind::TooLarge, "too large")))
            }
            Habit::FailsAfterTheFirstClaim | Habit::FailsToSettleOnce | Habit::TakesNoAnswer => {
                self.inner.settle(key, settlement)
            }
        }
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.inner.release(key, release)
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        self.inner.changed(key, holder, within)
    }
}

async fn status(app: &Router) -> (StatusCode, bool) {
    let response = app.clone().oneshot(request("/orders", "7f0c", "order 7")).await.unwrap();
    (response.status(), response.headers().contains_key("idempotent-replayed"))
}

#[tokio::test(start_paused = true)]
async fn a_store_that_has_to_be_awaited_after_all_is_asked_again_by_the_same_claimant() {
    let store = SaysImmediate::new(Habit::Awaited);
    let (app, runs) = store.app();
    assert_eq!(status(&app).await, (StatusCode::CREATED, false));
    {
        let claimants = store.claimants.lock().unwrap();
        assert!(matches!(claimants[..], [first, again] if first == again), "{claimants:?}");
    }
    assert_eq!(status(&app).await, (StatusCode::CREATED, true));
    assert_eq!(runs.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_after_it_took_effect_is_released() {
    let store = SaysImmediate::new(Habit::FailsAfterTheFirstClaim);
    let (app, runs) = store.app();
    assert_eq!(status(&app).await, (StatusCode::SERVICE_UNAVAILABLE, false));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(status(&app).await, (StatusCode::CREATED, false));
    assert_eq!(runs.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_fails_at_once_is_repeated() {
    let store = SaysImmediate::new(Habit::FailsToSettleOnce);
    let (app, runs) = store.app();
    assert_eq!(status(&app).await, (StatusCode::CREATED, false));
    assert_eq!(store.settled.load(SeqCst), 2);
    assert_eq!(status(&app).await, (StatusCode::CREATED, true));
    assert_eq!(runs.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_refused_at_once_for_its_size_leaves_a_tombstone() {
    let store = SaysImmediate::new(Habit::TakesNoAnswer);
    let (app, runs) = store.app();
    assert_eq!(status(&app).await, (StatusCode::CREATED, false));
    assert_eq!(store.settled.load(SeqCst), 2);
    assert_eq!(status(&app).await, (StatusCode::CONFLICT, false));
    assert_eq!(runs.load(SeqCst), 1);
}
