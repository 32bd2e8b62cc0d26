//! A process that stands still with its claim on the way, on whatever store: by the time it reads that the claim was
//! granted, another process may have taken over and answered.

use std::{
    convert::Infallible,
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use axum::body::Body;
use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    ConsumerLayer, IdempotencyLayer, Once,
    consumer::Consumed,
    fingerprint::Fingerprint,
    store::{
        Claim, Claimant, Claimed, Entered, FailedAttempt, Finished, Issue, Issued, RecordKey, Release, Renewed,
        Settlement, Store, StoreFuture, TransactionalStore,
    },
};

const LEASE: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(30);
const ROUNDS: usize = 3;

/// What asks for an operation.
#[derive(Clone, Copy, Debug)]
enum Edge {
    Request,
    Message,
    Function,
}

/// How a claim is made.
pub(crate) trait Mode<S> {
    fn requests(store: S) -> IdempotencyLayer;
    fn messages(store: S) -> ConsumerLayer<String>;
    fn functions(store: S) -> Once;
}

/// By a lease.
pub(crate) struct Leased;

impl<S: Store> Mode<S> for Leased {
    fn requests(store: S) -> IdempotencyLayer {
        IdempotencyLayer::new(store)
    }

    fn messages(store: S) -> ConsumerLayer<String> {
        ConsumerLayer::with_fingerprint(store, "payouts", String::clone, |_| Fingerprint::OFF)
    }

    fn functions(store: S) -> Once {
        Once::new(store, "close-of-day")
    }
}

/// In the transaction in which the work is done.
#[allow(dead_code, reason = "not every store has transactions")]
pub(crate) struct InTransactions;

impl<S: TransactionalStore> Mode<S> for InTransactions {
    fn requests(store: S) -> IdempotencyLayer {
        IdempotencyLayer::transactional(store)
    }

    fn messages(store: S) -> ConsumerLayer<String> {
        ConsumerLayer::transactional_with_fingerprint(store, "payouts", String::clone, |_| Fingerprint::OFF)
    }

    fn functions(store: S) -> Once {
        Once::transactional(store, "close-of-day")
    }
}

/// What one try comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// It ran, and says so.
    Ran,
    /// It did not run, and learns that another one did.
    Done,
    /// It did not run, and is to be repeated.
    NotNow,
}

async fn one_try<M: Mode<S>, S>(edge: Edge, key: &str, store: S) -> Came {
    let runs = Arc::new(AtomicU32::new(0));
    let run = {
        let runs = Arc::clone(&runs);
        move || runs.fetch_add(1, SeqCst)
    };
    let succeeds = match edge {
        Edge::Request => {
            let handler = service_fn(move |_: Request<_>| {
                run();
                async { Ok::<_, Infallible>(Response::new(Body::from("paid"))) }
            });
            let request = Request::post("/orders").header("Idempotency-Key", key).body(Body::empty()).unwrap();
            let layer = M::requests(store).route("orders").unscoped().lease(LEASE);
            layer.layer(handler).oneshot(request).await.unwrap().status().is_success()
        }
        Edge::Message => {
            let service = service_fn(move |_: String| {
                run();
                async { Ok::<_, Infallible>(()) }
            });
            let consumed = M::messages(store).lease(LEASE).layer(service).oneshot(key.to_owned()).await.unwrap();
            matches!(consumed, Consumed::Executed(()) | Consumed::AlreadyDone)
        }
        Edge::Function => {
            let function = move |_| {
                run();
                async { Ok::<_, Infallible>(()) }
            };
            M::functions(store).lease(LEASE).run(key, function).await.is_ok()
        }
    };
    match (succeeds, runs.load(SeqCst)) {
        (true, 1) => Came::Ran,
        (true, 0) => Came::Done,
        (false, 0) => Came::NotNow,
        (_, runs) => panic!("{edge:?}: {runs} runs, and no answer of one"),
    }
}

/// A store whose process stands still for longer than a lease once its first claim is answered.
pub(crate) struct StandsStill<S> {
    store: S,
    meanwhile: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl<S> StandsStill<S> {
    /// Blocks the thread, so that no timer of this process can fire.
    fn stand_still(&self) {
        if let Some(meanwhile) = self.meanwhile.lock().unwrap().take() {
            thread::sleep(LEASE + LEASE / 2);
            meanwhile();
        }
    }
}

/// A try of another process, repeated until it has run.
fn another_runs<M: Mode<S>, S, F>(edge: Edge, key: &str, connect: impl FnOnce() -> F + Send)
where
    S: Clone,
    F: Future<Output = S>,
{
    let until_it_ran = async move || {
        let (store, began) = (connect().await, Instant::now());
        while one_try::<M, S>(edge, key, store.clone()).await != Came::Ran {
            assert!(began.elapsed() < PATIENCE, "{edge:?}: the claim of a process that stands still does not lapse");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    thread::scope(|scope| scope.spawn(move || runtime().block_on(until_it_ran())).join().unwrap());
}

/// Such a claim runs nothing, is given back, and leaves alone what the other process has recorded. `overtaken` says whether
/// another process can take over before this one gives its claim back.
pub(crate) async fn a_stale_grant_runs_nothing<M, S, F>(
    connect: impl Fn() -> F + Clone + Send + 'static,
    overtaken: bool,
) where
    M: Mode<StandsStill<S>> + Mode<S> + 'static,
    S: Clone + 'static,
    F: Future<Output = S>,
{
    for edge in [Edge::Request, Edge::Message, Edge::Function] {
        for round in 0..ROUNDS {
            let key = round.to_string();
            let meanwhile: Box<dyn FnOnce() + Send> = {
                let (key, connect) = (key.clone(), connect.clone());
                Box::new(move || {
                    if overtaken {
                        another_runs::<M, S, F>(edge, &key, connect);
                    }
                })
            };
            let stalled = StandsStill { store: connect().await, meanwhile: Mutex::new(Some(meanwhile)) };
            assert_eq!(one_try::<M, _>(edge, &key, stalled).await, Came::NotNow, "{edge:?}");
            // What it does in the background, it has done by then.
            tokio::time::sleep(LEASE).await;
            let expected = if overtaken { Came::Done } else { Came::Ran };
            assert_eq!(one_try::<M, _>(edge, &key, connect().await).await, expected, "{edge:?}");
        }
    }
}

impl<S: Store> Store for StandsStill<S> {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        self.store.issue(key, issue)
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        StoreFuture::new(async move {
            let claimed = self.store.claim(key, claim).await;
            self.stand_still();
            claimed
        })
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        self.store.renew(key, claim)
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        self.store.settle(key, settlement)
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.store.release(key, release)
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        self.store.changed(key, holder, within)
    }
}

impl<S: TransactionalStore> TransactionalStore for StandsStill<S> {
    fn enter<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Entered> {
        StoreFuture::new(async move {
            let entered = self.store.enter(key, claim).await;
            self.stand_still();
            entered
        })
    }

    fn left<'a>(&'a self, key: &'a RecordKey, within: Duration) -> StoreFuture<'a, ()> {
        self.store.left(key, within)
    }

    fn record_failure<'a>(
        &'a self,
        key: &'a RecordKey,
        claim: &'a Claim,
        failed: &'a FailedAttempt,
    ) -> StoreFuture<'a, ()> {
        self.store.record_failure(key, claim, failed)
    }
}
