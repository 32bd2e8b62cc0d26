//! What a reconciler does, in time that stands still.

use std::{
    future::{pending, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use axum::{Router, body::Body, http::Request, routing::post};
use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};
use tower::ServiceExt;
use tower_idempotency::{
    Event, IdempotencyLayer, MemoryStore, Once, Operation, Policy, Reconciler, RunPolicy,
    reconcile::{Abandoned, Payload, Resolution, SweepReport},
    store::{Claim, Claimed, Filter, RecordKey, Settlement, State, Store, StoreAdmin, StoreErrorKind, StoreVerb},
    testing::FaultyStore,
};

const LEASE: Duration = Duration::from_secs(30);
const MINUTE: Duration = Duration::from_secs(60);

fn key(key: &str) -> RecordKey {
    RecordKey::new("/payments", None, key).unwrap()
}

/// Payments whose runners never came back.
async fn abandoned(store: &MemoryStore, names: &[&str]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for name in names {
        let mut claim = Claim::new(LEASE, 1000 * MINUTE);
        claim.at_most_once = true;
        assert!(matches!(store.claim(&key(name), &claim).await.unwrap(), Claimed::Granted(_)));
        claims.push(claim);
    }
    sleep(LEASE).await;
    claims
}

async fn state(store: &MemoryStore, name: &str) -> State {
    store.inspect(&key(name)).await.unwrap().unwrap().state
}

/// Answers always the same, and counts.
fn answers(store: impl StoreAdmin, resolution: Resolution) -> (Reconciler, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let reconciler = Reconciler::new(store, move |_| {
        counted.fetch_add(1, SeqCst);
        ready(resolution.clone())
    });
    (reconciler.grace(Duration::ZERO), asked)
}

fn sweep(change: impl FnOnce(&mut SweepReport)) -> SweepReport {
    let mut sweep = SweepReport::default();
    change(&mut sweep);
    sweep
}

#[tokio::test(start_paused = true)]
async fn an_at_most_once_route_gets_unstuck() {
    let store = MemoryStore::new();
    let layer = IdempotencyLayer::new(store.clone()).policy(Policy::at_most_once()).cancel_on_disconnect();
    let app: Router = Router::new().route("/payments", post(pending::<StatusCode>)).layer(layer);
    let pay = || {
        let request = Request::post("/payments").header("Idempotency-Key", "a").body(Body::empty()).unwrap();
        app.clone().oneshot(request)
    };
    assert!(tokio::time::timeout(MINUTE, pay()).await.is_err());
    sleep(LEASE).await;
    assert_eq!(pay().await.unwrap().status(), StatusCode::CONFLICT);

    let mut paid = Response::new(Bytes::from_static(b"payment 7"));
    *paid.status_mut() = StatusCode::CREATED;
    let (reconciler, _) = answers(store, Resolution::Settle(Payload::response(&paid)));
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.settled = 1));

    let replayed = pay().await.unwrap();
    assert_eq!(replayed.status(), StatusCode::CREATED);
    assert_eq!(replayed.headers()["idempotent-replayed"], "true");
    assert_eq!(replayed.into_body().collect().await.unwrap().to_bytes(), "payment 7");
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_released_runs() {
    let store = MemoryStore::new();
    abandoned(&store, &["a", "b"]).await;
    let (reconciler, asked) = answers(store.clone(), Resolution::Release);
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.released = 2));
    assert!(matches!(store.claim(&key("a"), &Claim::new(LEASE, LEASE)).await.unwrap(), Claimed::Granted(_)));
    assert_eq!(reconciler.run_once().await.unwrap(), SweepReport::default());
    assert_eq!(asked.load(SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn only_what_is_abandoned_and_asked_for() {
    let store = MemoryStore::new();
    abandoned(&store, &["a"]).await;
    store.claim(&key("alive"), &Claim::new(LEASE, LEASE)).await.unwrap();
    let (others, asked) = answers(store.clone(), Resolution::Release);
    let others = others.only(|abandoned| abandoned.key().route() != "/payments");
    assert_eq!(others.run_once().await.unwrap(), SweepReport::default());
    assert_eq!(asked.load(SeqCst), 0);
    let (all, _) = answers(store.clone(), Resolution::Release);
    assert_eq!(all.run_once().await.unwrap(), sweep(|it| it.released = 1));
    assert_eq!(state(&store, "alive").await, State::Running);
}

#[tokio::test(start_paused = true)]
async fn what_is_left_is_left_by_all_for_longer_each_time() {
    let store = MemoryStore::new();
    abandoned(&store, &["a"]).await;
    let (one, asked) = answers(store.clone(), Resolution::Leave);
    let (other, never) = answers(store.clone(), Resolution::Release);
    let one = one.backoff(MINUTE, 5 * MINUTE);
    for pause in [1, 2, 4, 5, 5] {
        assert_eq!(one.run_once().await.unwrap(), sweep(|it| it.left = 1));
        let ends = Instant::now() + pause * MINUTE;
        sleep_until(ends.checked_sub(Duration::from_millis(1)).unwrap()).await;
        assert_eq!(one.run_once().await.unwrap(), sweep(|it| it.skipped = 1));
        assert_eq!(other.run_once().await.unwrap(), sweep(|it| it.skipped = 1));
        sleep_until(ends).await;
    }
    assert_eq!((asked.load(SeqCst), never.load(SeqCst)), (5, 0));
    assert_eq!(other.run_once().await.unwrap(), sweep(|it| it.released = 1));
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_and_so_many_at_once() {
    let store = MemoryStore::new();
    let names: Vec<String> = (0..250).map(|number| number.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    abandoned(&store, &names).await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let reconciler = || {
        let (asked, now, most) = (asked.clone(), now.clone(), most.clone());
        let ask = move |abandoned: Abandoned| {
            asked.lock().unwrap().push(abandoned.key().clone());
            let (now, most) = (now.clone(), most.clone());
            async move {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                // Longer than the lease of its case, which is renewed.
                sleep(2 * MINUTE).await;
                now.fetch_sub(1, SeqCst);
                Resolution::Settle(Payload::done())
            }
        };
        Reconciler::new(store.clone(), ask).grace(Duration::ZERO).concurrency(3)
    };
    let (one, two) = (reconciler(), reconciler());
    let (one, two) = tokio::join!(one.run_once(), two.run_once());
    assert_eq!(one.unwrap().settled + two.unwrap().settled, 250);
    let mut asked = std::mem::take(&mut *asked.lock().unwrap());
    asked.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    asked.dedup();
    assert_eq!(asked.len(), 250);
    assert_eq!(most.load(SeqCst), 6);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_writes_nothing() {
    let store = MemoryStore::new();
    abandoned(&store, &["a", "b"]).await;
    let ask = |abandoned: Abandoned| async move {
        assert!(abandoned.is_dry_run() && abandoned.record().attempt == 1);
        if abandoned.key().key() == "a" { Resolution::Settle(Payload::tombstone()) } else { Resolution::Leave }
    };
    let dry = Reconciler::new(store.clone(), ask).grace(Duration::ZERO).dry_run();
    let before = store.stats().await.unwrap();
    for _ in 0..2 {
        assert_eq!(dry.run_once().await.unwrap(), sweep(|it| (it.settled, it.left) = (1, 1)));
    }
    assert_eq!(store.stats().await.unwrap(), before);
}

/// A runner that has lost its store may be about to act: its record is nobody's business for ten leases, however long
/// they are.
#[tokio::test(start_paused = true)]
async fn a_record_is_left_alone_until_its_runner_must_have_ended() {
    let store = MemoryStore::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let reconciler = Reconciler::new(store.clone(), move |abandoned: Abandoned| {
        counted.fetch_add(1, SeqCst);
        assert_eq!(abandoned.record().lapsed_for, 10 * abandoned.record().lease);
        ready(Resolution::Release)
    });
    for (n, lease) in [Duration::from_millis(7), LEASE, 10 * MINUTE].into_iter().enumerate() {
        let mut claim = Claim::new(lease, 1000 * MINUTE);
        claim.at_most_once = true;
        assert!(matches!(store.claim(&key("a"), &claim).await.unwrap(), Claimed::Granted(_)));
        let due = Instant::now() + 11 * lease;
        sleep_until(due.checked_sub(Duration::from_millis(1)).unwrap()).await;
        assert_eq!(reconciler.run_once().await.unwrap(), SweepReport::default());
        assert_eq!((asked.load(SeqCst), state(&store, "a").await), (n, State::Running));
        sleep(Duration::from_millis(1)).await;
        assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.released = 1));
    }
}

/// Of a store that does not tell how long a lease is, nothing is known but for how long it has lapsed.
#[tokio::test(start_paused = true)]
async fn a_record_whose_lease_is_unknown_is_left_alone_for_five_minutes() {
    let store = MemoryStore::new();
    let mut claim = Claim::new(Duration::ZERO, 1000 * MINUTE);
    claim.at_most_once = true;
    store.claim(&key("a"), &claim).await.unwrap();
    let reconciler = Reconciler::new(store.clone(), |_| ready(Resolution::Release));
    sleep((5 * MINUTE).saturating_sub(Duration::from_millis(1))).await;
    assert_eq!(reconciler.run_once().await.unwrap(), SweepReport::default());
    sleep(Duration::from_millis(1)).await;
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.released = 1));
}

#[tokio::test(start_paused = true)]
async fn a_function_hears_before_its_effect_that_its_record_may_be_abandoned() {
    let store = FaultyStore::new(MemoryStore::new());
    store.faults().on(StoreVerb::Renew).hang();
    let once = Once::new(store, "payments").policy(RunPolicy::at_most_once().lease(LEASE));
    let work = |operation: Operation| async move {
        sleep(LEASE / 2).await;
        let before = operation.is_lost();
        sleep(LEASE / 2).await;
        Ok::<_, String>((before, operation.is_lost()))
    };
    assert_eq!(once.run("a", work).await, Ok((false, true)));
}

#[tokio::test(start_paused = true)]
async fn a_panic_leaves_the_record() {
    let store = MemoryStore::new();
    abandoned(&store, &["a"]).await;
    let panics: fn(Abandoned) -> std::future::Ready<Resolution> = |_| panic!("by order");
    let reconciler = Reconciler::new(store.clone(), panics).grace(Duration::ZERO);
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.left = 1));
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.skipped = 1));
    assert_eq!(state(&store, "a").await, State::Running);
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_comes_back_keeps_its_record() {
    let store = MemoryStore::new();
    let claim = abandoned(&store, &["a"]).await.remove(0);
    let back = store.clone();
    let reconciler = Reconciler::new(store.clone(), move |abandoned| {
        let (back, claim) = (back.clone(), claim.clone());
        async move {
            let settlement = Settlement::new(claim.claimant, Some("its own".into()), MINUTE);
            back.settle(abandoned.key(), &settlement).await.unwrap();
            Resolution::Settle(Payload::tombstone())
        }
    })
    .grace(Duration::ZERO);
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.failed = 1));
    assert_eq!(store.inspect(&key("a")).await.unwrap().unwrap().payload, Some("its own".into()));
}

#[tokio::test(start_paused = true)]
async fn a_record_that_ended_after_it_was_listed_is_not_asked_about() {
    let store = MemoryStore::new();
    let claim = abandoned(&store, &["a", "b"]).await.remove(1);
    let faulty = FaultyStore::new(store.clone());
    let gate = faulty.faults().on(StoreVerb::Claim).hold();
    let (reconciler, asked) = answers(faulty, Resolution::Release);
    let sweeping = tokio::spawn(async move { reconciler.run_once().await.unwrap() });
    sleep(Duration::from_millis(1)).await;
    store.settle(&key("b"), &Settlement::new(claim.claimant, None, MINUTE)).await.unwrap();
    gate.open();
    assert_eq!(sweeping.await.unwrap(), sweep(|it| (it.released, it.skipped) = (1, 1)));
    assert_eq!(asked.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_dies_is_relieved() {
    let store = MemoryStore::new();
    abandoned(&store, &["a"]).await;
    let dies = Reconciler::new(store.clone(), |_| pending()).grace(Duration::ZERO);
    assert!(tokio::time::timeout(MINUTE, dies.run_once()).await.is_err());
    let (other, asked) = answers(store.clone(), Resolution::Release);
    assert_eq!(other.run_once().await.unwrap(), sweep(|it| it.skipped = 1));
    sleep(LEASE).await;
    // Its claim is abandoned too, and nothing to ask about.
    assert_eq!(store.list(Filter::Abandoned, None, 10).await.unwrap().entries.len(), 2);
    assert_eq!(other.run_once().await.unwrap(), sweep(|it| it.released = 1));
    assert_eq!(asked.load(SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails() {
    let store = MemoryStore::new();
    abandoned(&store, &["a"]).await;
    let faulty = Arc::new(FaultyStore::new(store.clone()));
    faulty.faults().on(StoreVerb::Claim).once().fail(StoreErrorKind::Unavailable);
    let (reconciler, asked) = answers(faulty.clone(), Resolution::Release);
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.failed = 1));
    assert_eq!(asked.load(SeqCst), 0);
    // What the claim may have left behind is released.
    sleep(MINUTE).await;
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.released = 1));
}

#[tokio::test(start_paused = true)]
async fn it_runs_until_it_is_told_to_stop() {
    let store = MemoryStore::new();
    abandoned(&store, &["a"]).await;
    let reconciler = Reconciler::new(store.clone(), |_| async {
        sleep(MINUTE).await;
        Resolution::Release
    })
    .grace(Duration::ZERO)
    .concurrency(1);
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { reconciler.run(10 * MINUTE, async { drop(stopped.await) }).await });
    sleep(2 * MINUTE).await;
    assert_eq!(state(&store, "a").await, State::Released);

    abandoned(&store, &["b", "c"]).await;
    sleep(9 * MINUTE).await;
    assert!(!running.is_finished());
    drop(stop);
    running.await.unwrap();
    let states = [state(&store, "b").await, state(&store, "c").await];
    assert_eq!(states.iter().filter(|&&state| state == State::Released).count(), 1, "one in hand, none further");
}

#[tokio::test(start_paused = true)]
async fn a_stop_ends_the_pause() {
    let (reconciler, _) = answers(MemoryStore::new(), Resolution::Leave);
    let began = Instant::now();
    reconciler.run(MINUTE, sleep(MINUTE / 2)).await;
    assert_eq!(began.elapsed(), MINUTE / 2);
}

#[cfg(feature = "presets")]
#[tokio::test(start_paused = true)]
async fn what_is_found_to_have_failed_is_no_success_for_its_sender() {
    use tower_idempotency::{AfterCrash, preset};

    let store = MemoryStore::new();
    let layer = IdempotencyLayer::new(store.clone())
        .preset(preset::alipay())
        .after_crash(AfterCrash::Never)
        .cancel_on_disconnect();
    let app: Router = Router::new().route("/payments", post(pending::<StatusCode>)).layer(layer);
    let deliver = || {
        let request = Request::post("/payments").header("Content-Type", "application/x-www-form-urlencoded");
        app.clone().oneshot(request.body(Body::from("notify_id=7f0c")).unwrap())
    };
    assert!(tokio::time::timeout(MINUTE, deliver()).await.is_err());
    sleep(LEASE).await;
    let (reconciler, _) = answers(store, Resolution::Settle(Payload::failed()));
    assert_eq!(reconciler.run_once().await.unwrap(), sweep(|it| it.settled = 1));
    let refused = deliver().await.unwrap();
    assert_eq!(refused.status(), StatusCode::INTERNAL_SERVER_ERROR);
    let document = refused.into_body().collect().await.unwrap().to_bytes();
    assert!(String::from_utf8_lossy(&document).contains("#handler-failed"), "{document:?}");
}

/// What a reconciler releases is the next attempt for as long as an answer would have been kept.
#[tokio::test(start_paused = true)]
async fn a_release_remembers_the_attempts_for_the_retention() {
    for (hours, attempt) in [(2, 2), (25, 1)] {
        let store = MemoryStore::new();
        abandoned(&store, &["a"]).await;
        let (reconciler, _) = answers(store.clone(), Resolution::Release);
        reconciler.run_once().await.unwrap();
        sleep(60 * MINUTE * hours).await;
        let claimed = store.claim(&key("a"), &Claim::new(LEASE, MINUTE)).await.unwrap();
        let Claimed::Granted(granted) = claimed else { panic!("{claimed:?}") };
        assert_eq!(granted.attempt, attempt, "after {hours} hours");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_receives_each_sweep() {
    let store = MemoryStore::new();
    for name in ["a", "b"] {
        let claim = Claim::new(LEASE, 1000 * MINUTE);
        assert!(matches!(store.claim(&key(name), &claim).await.unwrap(), Claimed::Granted(_)));
    }
    sleep(LEASE).await;
    let (reconciler, _) = answers(store.clone(), Resolution::Release);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = seen.clone();
    let reconciler = reconciler.observer(move |event: &Event<'_>| {
        lines.lock().unwrap().push(match event {
            Event::Reconciled { sweep, .. } => format!("{} of {} released", sweep.released, sweep.found()),
            // The claims of the reconciler itself are nobody's requests.
            event => format!("unexpected: {event:?}"),
        });
    });
    reconciler.run_once().await.unwrap();
    reconciler.run_once().await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["2 of 2 released", "0 of 0 released"]);
}
