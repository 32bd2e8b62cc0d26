//! What an observer receives, and what no observer receives: the text of a key.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::{
    answers::fixture::Fixture,
    common::Counter,
    faulty_bench::{Ask, Bench, End, LEASE, ask, secs},
};
use bytes::Bytes;
use http::Response;
use tokio::time::sleep;
use tower_idempotency::{
    BackgroundTasks, Event, IdempotencyLayer, Observer, OnDuplicate, Policy, WhileRunning,
    policy::Reply,
    store::{StoreErrorKind, StoreVerb},
};

/// Returns the events while these requests are served, one after the other.
async fn heard(bench: &Bench, asks: impl IntoIterator<Item = Ask>) -> Vec<String> {
    for ask in asks {
        // Those that panic are reported as well.
        let _ = bench.send(ask).await;
    }
    bench.log.take()
}

fn same(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer
}

fn reject(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.on_duplicate(OnDuplicate::Reject)
}

fn respond(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.on_duplicate(OnDuplicate::Respond(Reply::fixed(Response::new(Bytes::from_static(b"success")))))
}

fn at_most_once(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.policy(Policy::at_most_once())
}

#[tokio::test(start_paused = true)]
async fn of_a_request_and_its_duplicates() {
    type Case = (fn(IdempotencyLayer) -> IdempotencyLayer, Vec<Ask>, &'static [&'static str]);
    let one = || ask("k");
    let cases: [Case; 9] = [
        (same, vec![one(), one()], &["claimed: 1", "settled", "replayed"]),
        (same, vec![one(), one().body("two")], &["claimed: 1", "settled", "refused: key-reused"]),
        (same, vec![one().ends(End::Answers(500)), one()], &["claimed: 1", "released", "claimed: 2", "settled"]),
        (same, vec![one().ends(End::Panics)], &["claimed: 1", "released"]),
        (same, vec![one().ends(End::Fails)], &["claimed: 1", "released"]),
        (
            same,
            vec![one().ends(End::Answers(206)), one()],
            &["claimed: 1", "settled as a tombstone: partial", "refused: response-not-retained"],
        ),
        (reject, vec![one(), one()], &["claimed: 1", "settled", "refused: duplicate-request"]),
        (respond, vec![one(), one()], &["claimed: 1", "settled", "responded"]),
        (at_most_once, vec![one().ends(End::Panics), one()], &["claimed: 1", "settled", "replayed"]),
    ];
    for (adjust, asks, expected) in cases {
        assert_eq!(heard(&Bench::with(adjust), asks).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_key_that_is_none() {
    assert_eq!(heard(&Bench::new(), [ask(","), ask("")]).await, ["refused: key-invalid", "refused: key-invalid"]);
}

#[tokio::test(start_paused = true)]
async fn of_a_request_that_runs() {
    let reply = Reply::fixed(Response::new(Bytes::from_static(b"later")));
    let cases: [(_, &[&str]); 3] = [
        (WhileRunning::Refuse, &["claimed: 1", "refused: request-in-progress"]),
        (WhileRunning::Wait(secs(1)), &["claimed: 1", "waiting", "waited: timed-out", "refused: request-in-progress"]),
        (WhileRunning::Respond(reply), &["claimed: 1", "responded"]),
    ];
    for (while_running, expected) in cases {
        let bench = Bench::with(|layer| layer.while_running(while_running));
        let first = bench.send(ask("k").takes(secs(9)));
        bench.until(secs(1)).await;
        assert_eq!(heard(&bench, [ask("k")]).await, expected);
        first.await.unwrap();
        assert_eq!(bench.log.take(), ["settled"]);
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_store_that_fails() {
    use StoreVerb::{Changed, Claim, Release, Renew, Settle};
    let again = "settle failed: Unavailable, again";
    let cases: [(StoreVerb, usize, StoreErrorKind, Ask, &[&str]); 8] = [
        (Claim, 1, StoreErrorKind::Unavailable, ask("k"), &["claim failed: Unavailable", "refused: store-unavailable"]),
        (Claim, 1, StoreErrorKind::Full, ask("k"), &["claim failed: Full", "refused: store-full"]),
        (
            Renew,
            1,
            StoreErrorKind::Timeout,
            ask("k").takes(secs(12)),
            &["claimed: 1", "renew failed: Timeout, again", "settled"],
        ),
        (Settle, 2, StoreErrorKind::Unavailable, ask("k"), &["claimed: 1", again, again, "settled"]),
        (
            Settle,
            1,
            StoreErrorKind::Misconfigured,
            ask("k"),
            &["claimed: 1", "settle failed: Misconfigured", "not recorded: settle"],
        ),
        (
            Release,
            1,
            StoreErrorKind::Unavailable,
            ask("k").ends(End::Answers(500)),
            &["claimed: 1", "release failed: Unavailable, again", "released"],
        ),
        (
            Release,
            1,
            StoreErrorKind::Corrupt,
            ask("k").ends(End::Answers(500)),
            &["claimed: 1", "release failed: Corrupt", "not recorded: release"],
        ),
        (Changed, 1, StoreErrorKind::Other, ask("k"), &["claimed: 1", "settled"]),
    ];
    for (verb, times, kind, ask, expected) in cases {
        let bench = Bench::new();
        bench.faults.on(verb).times(times).fail(kind);
        assert_eq!(heard(&bench, [ask]).await, expected, "{verb} {kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_store_that_does_not_answer() {
    let bench = Bench::with(IdempotencyLayer::fail_open);
    bench.faults.on(StoreVerb::Claim).once().after_effect().hang();
    let asks = [ask("k").takes(secs(1))];
    // What is released is the claim that took effect.
    assert_eq!(heard(&bench, asks).await, ["claim failed: Timeout", "failed open", "withdrawn"]);
}

#[tokio::test(start_paused = true)]
async fn of_a_store_that_cannot_be_waited_at() {
    let bench = Bench::with(|layer| layer.while_running(WhileRunning::Wait(secs(5))));
    bench.faults.on(StoreVerb::Changed).once().fail(StoreErrorKind::Unavailable);
    let first = bench.send(ask("k").takes(secs(2)));
    tokio::task::yield_now().await;
    let expected =
        ["claimed: 1", "waiting", "changed failed: Unavailable, again", "settled", "waited: ended", "replayed"];
    assert_eq!(heard(&bench, [ask("k")]).await, expected);
    first.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn of_each_wait_that_ends() {
    let waits = || Bench::with(|layer| layer.while_running(WhileRunning::Wait(secs(5))));
    let bench = waits();
    let first = bench.send(ask("k").takes(secs(2)));
    bench.until(secs(1)).await;
    leave_while_waiting(&bench).await;
    assert_eq!(bench.log.take(), ["claimed: 1", "waiting", "waited: cancelled"]);
    first.await.unwrap();

    let bench = waits();
    bench.faults.on(StoreVerb::Claim).skip(2).once().fail(StoreErrorKind::Unavailable);
    let first = bench.send(ask("k").takes(secs(2)).ends(End::Answers(500)));
    bench.until(secs(1)).await;
    let log = heard(&bench, [ask("k")]).await;
    let expected =
        ["claimed: 1", "waiting", "released", "waited: store-failed", "claim failed: Unavailable", "responded"];
    assert_eq!(log[..5], expected[..5]);
    first.await.unwrap();
}

/// Sends a duplicate whose client leaves while it waits.
async fn leave_while_waiting(bench: &Bench) {
    let client = bench.send(ask("k"));
    tokio::task::yield_now().await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn of_a_claim_that_is_overtaken() {
    let bench = Bench::new();
    bench.faults.on(StoreVerb::Renew).times(9).fail(StoreErrorKind::Unavailable);
    bench.faults.on(StoreVerb::Renew).hang();
    let first = bench.send(ask("k").takes(LEASE + secs(9)));
    bench.until(LEASE + secs(1)).await;
    let failed = bench.log.take();
    assert_eq!(failed[..2], ["claimed: 1", "renew failed: Unavailable, again"]);
    assert_eq!(
        heard(&bench, [ask("k").ends(End::Answers(500)), ask("k")]).await,
        ["taken over: 2", "released", "claimed: 3", "settled"]
    );
    first.await.unwrap();
    assert_eq!(bench.log.take(), ["renew failed: Timeout, again", "lost: 1", "replayed"]);
}

/// Sends a request of three seconds whose client leaves after one.
async fn leave(bench: &Bench, ask: Ask) {
    let client = bench.send(ask.takes(secs(3)));
    sleep(secs(1)).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn of_a_client_that_leaves() {
    type Adjust = fn(IdempotencyLayer) -> IdempotencyLayer;
    let short = |layer: IdempotencyLayer| layer.background_tasks(BackgroundTasks::new().max_duration(secs(1)));
    let cases: [(Adjust, End, &[&str]); 5] = [
        (same, End::Answers(201), &["claimed: 1", "detached", "settled", "ended in the background after 2s"]),
        (same, End::Answers(500), &["claimed: 1", "detached", "released", "ended in the background after 2s"]),
        (same, End::Panics, &["claimed: 1", "detached"]),
        (
            IdempotencyLayer::cancel_on_disconnect,
            End::Answers(201),
            &["claimed: 1", "dropped after 0ns: cancel-on-disconnect"],
        ),
        (short, End::Answers(201), &["claimed: 1", "detached", "dropped after 1s: timed-out"]),
    ];
    for (adjust, end, expected) in cases {
        let bench = Bench::with(adjust);
        leave(&bench, ask("k").ends(end)).await;
        bench.until(secs(9)).await;
        assert_eq!(bench.log.take(), expected);
    }
}

#[derive(Default)]
struct Replays(AtomicUsize);

impl Observer for Replays {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Replayed { .. } = event {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_may_be_shared_or_a_closure() {
    let (shared, counted) = (Arc::new(Replays::default()), Counter::default());
    let counting = counted.clone();
    let closure = move |event: &Event<'_>| {
        if let Event::Replayed { .. } = event {
            counting.next();
        }
    };
    let erased: Arc<dyn Observer> = shared.clone();
    let fixtures = [
        Fixture::new(|layer| layer.observer(shared.clone()), |_| "done"),
        Fixture::new(|layer| layer.observer(erased), |_| "done"),
        Fixture::new(|layer| layer.observer(closure), |_| "done"),
    ];
    for fixture in fixtures {
        for _ in 0..2 {
            assert_eq!(fixture.ask().await.status(), 200);
        }
    }
    assert_eq!((shared.0.load(Ordering::Relaxed), counted.get()), (2, 1));
}

#[derive(Clone, Default)]
struct Figures(Arc<std::sync::Mutex<Vec<String>>>);

impl Observer for Figures {
    fn on_event(&self, event: &Event<'_>) {
        let text = match *event {
            Event::Claimed { took, .. } => format!("claimed within a second: {}", took < secs(1)),
            Event::Settled { status, kept, ran, took, .. } => {
                format!("{status:?}, kept something: {}, ran {ran:?}, recorded in {took:?}", kept > 0)
            }
            Event::Released { status, ran, took, .. } => format!("{status:?}, ran {ran:?}, released in {took:?}"),
            Event::Replayed { status, age, .. } => format!("replayed {status:?}, with an age: {}", age.is_some()),
            Event::Waited { waited, end, .. } => format!("waited {waited:?}: {end}"),
            Event::Keyless { route, .. } => format!("without a key: {route}"),
            Event::Refused { route, key: None, refusal, .. } => format!("refused at {route}: {}", refusal.name()),
            _ => return,
        };
        self.0.lock().unwrap().push(text);
    }
}

#[tokio::test(start_paused = true)]
async fn events_say_how_long_it_took_and_every_observer_receives_them() {
    let (one, other) = (Figures::default(), Figures::default());
    let layer = IdempotencyLayer::new(tower_idempotency::MemoryStore::new())
        .observer(one.clone())
        .observer(other.clone())
        .key_optional()
        .while_running(WhileRunning::Wait(secs(4)));
    let handler = async |body: String| {
        sleep(secs(body.parse().unwrap_or(0))).await;
        if body == "fails" { Err(http::StatusCode::BAD_GATEWAY) } else { Ok(body) }
    };
    let app = axum::Router::new().route("/run", axum::routing::post(handler)).layer(layer);
    let ask = async |key: &str, body: &'static str| {
        use tower::ServiceExt;
        let mut request = http::Request::post("/run");
        if !key.is_empty() {
            request = request.header("idempotency-key", key);
        }
        app.clone().oneshot(request.body(axum::body::Body::from(body)).unwrap()).await.unwrap();
    };
    let beside = async |seconds| {
        sleep(secs(seconds)).await;
        ask("slow", "7").await;
    };
    ask("", "").await;
    ask(",", "").await;
    ask("fails", "fails").await;
    tokio::join!(ask("slow", "7"), beside(1), beside(5));
    let expected = [
        "without a key: /run",
        "refused at /run: key-invalid",
        "claimed within a second: true",
        "Some(502), ran 0ns, released in 0ns",
        "claimed within a second: true",
        "waited 4s: timed-out",
        "Some(200), kept something: true, ran 7s, recorded in 0ns",
        "waited 2s: ended",
        "replayed Some(200), with an age: true",
    ];
    assert_eq!(*one.0.lock().unwrap(), expected);
    assert_eq!(*other.0.lock().unwrap(), expected);
}
