//! Functions run once for a key, and duplicates get the value of the first.
#![cfg(all(feature = "json", feature = "memory", feature = "testing"))]

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};
use tower_idempotency::{
    AfterCrash, BackgroundTasks, MemoryStore, Once, Operation, Refusal, RunPolicy,
    fingerprint::Fingerprint,
    key::KeyError,
    reconcile::Payload,
    run::RunError,
    store::{Claimant, RecordKey, Settlement, State, StoreAdmin, StoreErrorKind, StoreVerb},
    testing::FaultyStore,
};

const LEASE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Invoice {
    number: u32,
    lines: Vec<String>,
}

#[derive(Clone, Default)]
struct Writer(Arc<AtomicU32>);

impl Writer {
    fn write(&self) -> impl Future<Output = Result<Invoice, String>> + Send + use<> {
        let writer = self.clone();
        async move {
            let number = writer.0.fetch_add(1, SeqCst) + 1;
            sleep(SECOND).await;
            Ok(Invoice { number, lines: vec!["two apples".into()] })
        }
    }

    fn fail(&self) -> impl Future<Output = Result<Invoice, String>> + Send + use<> {
        self.0.fetch_add(1, SeqCst);
        async { Err("out of paper".into()) }
    }
}

type Outcome = Result<Invoice, RunError<String>>;

fn key(key: &str) -> RecordKey {
    RecordKey::new("invoices", None, key).unwrap()
}

fn once() -> (MemoryStore, Once, Writer) {
    let store = MemoryStore::new();
    (store.clone(), Once::new(store, "invoices"), Writer::default())
}

async fn write(once: &Once, writer: &Writer, key: &str) -> Outcome {
    let writer = writer.clone();
    once.run(key, move |_| writer.write()).await
}

async fn fail(once: &Once, writer: &Writer) -> Outcome {
    let writer = writer.clone();
    once.run("a", move |_| writer.fail()).await
}

/// Begins, and never ends.
async fn crash(once: &Once) {
    crash_of(once, "a").await;
}

async fn crash_of(once: &Once, key: &str) {
    let hangs = once.clone().cancel_on_disconnect().run(key, |_| pending::<Result<Invoice, String>>());
    assert!(timeout(SECOND, hangs).await.is_err());
    sleep(LEASE).await;
}

/// The time left of the run that has not ended.
fn time_left(error: RunError<String>) -> Duration {
    match error {
        RunError::Refused(Refusal::RequestInProgress { left, .. }) => left,
        other => panic!("{other:?}"),
    }
}

fn refused<T>(refusal: Refusal) -> Result<T, RunError<String>> {
    Err(RunError::Refused(refusal))
}

#[tokio::test(start_paused = true)]
async fn the_value_is_replayed() {
    let (_, once, writer) = once();
    let first = write(&once, &writer, "a").await.unwrap();
    assert_eq!(first.number, 1);
    assert_eq!(write(&once, &writer, "a").await, Ok(first));
    assert_eq!(write(&once, &writer, "b").await.unwrap().number, 2);
    let scoped = once.clone().scope("ann");
    assert_eq!(write(&scoped, &writer, "a").await.unwrap().number, 3);
}

#[tokio::test(start_paused = true)]
async fn an_error_releases() {
    let (store, once, writer) = once();
    assert_eq!(fail(&once, &writer).await, Err(RunError::Failed("out of paper".into())));
    assert_eq!(store.inspect(&key("a")).await.unwrap().unwrap().state, State::Released);
    let attempt = once.run("a", |operation: Operation| async move { Ok::<_, String>(operation.attempt()) }).await;
    assert_eq!(attempt, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn an_error_is_kept_where_the_policy_says_so() {
    for policy in [RunPolicy::at_most_once(), RunPolicy::new().keep_errors(true)] {
        let (_, once, writer) = once();
        let once = once.policy(policy);
        assert_eq!(fail(&once, &writer).await, Err(RunError::Failed("out of paper".into())));
        assert_eq!(write(&once, &writer, "a").await, refused(Refusal::HandlerFailed));
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_an_answer_is_a_value() {
    let (_, once, _) = once();
    let declined = |why: &'static str| async move { Ok::<Result<u32, String>, String>(Err(why.into())) };
    for why in ["too little money", "no card"] {
        assert_eq!(once.run("a", move |_| declined(why)).await, Ok(Err("too little money".into())));
    }
}

#[tokio::test(start_paused = true)]
async fn errors_are_not_kept_by_default() {
    let (_, once, writer) = once();
    assert!(fail(&once, &writer).await.is_err());
    for _ in 0..2 {
        assert_eq!(write(&once, &writer, "a").await.unwrap().number, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_no_other_try_can_change_is_kept() {
    let (_, once, writer) = once();
    let permanent = once.clone().permanent_errors(|error: &String| error == "out of paper");
    assert_eq!(fail(&permanent, &writer).await, Err(RunError::Failed("out of paper".into())));
    assert_eq!(write(&once, &writer, "a").await, refused(Refusal::HandlerFailed));

    let gives_up = |operation: Operation| async move {
        operation.fail_permanently();
        Err::<Invoice, _>("no such customer".to_owned())
    };
    assert_eq!(once.run("b", gives_up).await, Err(RunError::Failed("no such customer".into())));
    assert_eq!(write(&once, &writer, "b").await, refused(Refusal::HandlerFailed));

    let other = once.clone().permanent_errors(|error: &String| error == "no such customer");
    assert!(matches!(
        other.run("c", |_| async { Err::<u8, _>("out of ink".to_owned()) }).await,
        Err(RunError::Failed(_))
    ));
    assert_eq!(other.run("c", |_| async { Ok::<_, String>(1) }).await, Ok(1));
}

/// To the last bit: a duplicate must not get another amount than the first.
#[tokio::test(start_paused = true)]
async fn numbers_are_replayed_as_they_were() {
    let (_, once, _) = once();
    // One in four of these is another number after a reading that is only nearly right.
    let mut bits = 0x3ff1_2345_6789_abcd_u64;
    for n in 0..2_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (long, short) = (f64::from_bits(bits), f32::from_bits((bits >> 32) as u32));
        if !long.is_finite() || !short.is_finite() {
            continue;
        }
        let key = n.to_string();
        let first = once.run(&key, move |_| async move { Ok::<_, String>((long, Some(short))) }).await.unwrap();
        let again = once.run(&key, |_| async { Ok::<(f64, Option<f32>), String>((0.0, None)) }).await.unwrap();
        assert_eq!(first.0.to_bits(), again.0.to_bits(), "{long:e}");
        assert_eq!(first.1.map(f32::to_bits), again.1.map(f32::to_bits), "{short:e}");
    }
    for odd in [0.0, -0.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, 0.1 + 0.2] {
        let key = format!("{odd:e}");
        once.run(&key, move |_| async move { Ok::<_, String>(odd) }).await.unwrap();
        let again = once.run(&key, |_| async { Ok::<_, String>(1.0_f64) }).await.unwrap();
        assert_eq!(odd.to_bits(), again.to_bits(), "{odd:e}");
    }
}

/// JSON would say `null`, and a duplicate would learn that there is no number.
#[tokio::test(start_paused = true)]
async fn a_number_that_is_not_finite_is_not_kept() {
    let (_, once, _) = once();
    for (key, number) in [("nan", f64::NAN), ("infinite", f64::INFINITY)] {
        let first = once.run(key, move |_| async move { Ok::<_, String>(Some(number)) }).await.unwrap();
        assert_eq!(first.map(f64::to_bits), Some(number.to_bits()));
        let again = once.run(key, |_| async { Ok::<_, String>(Some(1.0)) }).await;
        assert_eq!(again, Err(RunError::Refused(Refusal::ResponseNotRetained)), "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn in_a_window_what_is_asked_for_does_not_count() {
    let (_, once, writer) = once();
    let asking = |what: &str| {
        let asked = Fingerprint::builder().part(what).build();
        once.clone().policy(RunPolicy::window(60 * SECOND)).fingerprint(asked)
    };
    assert_eq!(write(&asking("one"), &writer, "a").await.unwrap().number, 1);
    assert_eq!(write(&asking("two"), &writer, "a").await, refused(Refusal::DuplicateRequest));
    sleep(60 * SECOND).await;
    assert_eq!(write(&asking("two"), &writer, "a").await.unwrap().number, 2);
}

/// A kept failure stays one, whatever duplicates of a success receive.
#[tokio::test(start_paused = true)]
async fn what_a_duplicate_is_told_if_no_value_is_replayed() {
    let (_, rejecting, writer) = once();
    let rejecting = rejecting.reject_duplicates(true).keep_errors(true);
    assert!(fail(&rejecting, &writer).await.is_err());
    assert_eq!(write(&rejecting, &writer, "a").await, refused(Refusal::HandlerFailed));
    assert_eq!(write(&rejecting, &writer, "b").await.unwrap().number, 2);
    assert_eq!(write(&rejecting, &writer, "b").await, refused(Refusal::DuplicateRequest));

    let (_, window, writer) = once();
    let window = window.policy(RunPolicy::window(60 * SECOND)).reject_duplicates(false);
    for _ in 0..2 {
        assert_eq!(write(&window, &writer, "a").await.unwrap().number, 1);
    }
    for (wait, second) in [(LEASE, Ok(1)), (SECOND / 2, Err(Duration::from_millis(29_500)))] {
        let (_, once, writer) = once();
        let once = once.wait(wait);
        let (_, told) = tokio::join!(write(&once, &writer, "a"), write(&once, &writer, "a"));
        assert_eq!(told.map(|invoice| invoice.number).map_err(time_left), second);
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_call_sets() {
    let (_, once, writer) = once();
    let short = once.clone().value_limit(3);
    assert_eq!(write(&short, &writer, "a").await.unwrap().number, 1);
    assert_eq!(write(&short, &writer, "a").await, refused(Refusal::ResponseNotRetained));
    let never = once.clone().after_crash(AfterCrash::Never);
    crash_of(&never, "b").await;
    assert_eq!(write(&never, &writer, "b").await, refused(Refusal::OutcomeUnknown));
}

#[tokio::test(start_paused = true)]
async fn while_it_runs() {
    let (_, once, writer) = once();
    let (first, second) = tokio::join!(write(&once, &writer, "a"), write(&once, &writer, "a"));
    assert_eq!(first.unwrap().number, 1);
    assert_eq!(second.map_err(time_left), Err(LEASE));

    let waiting = once.policy(RunPolicy::new().wait(LEASE));
    let (first, second) = tokio::join!(write(&waiting, &writer, "b"), write(&waiting, &writer, "b"));
    assert_eq!((first.unwrap().number, second.unwrap().number), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused() {
    let (_, once, writer) = once();
    for blank in ["", " ", "\u{3000}"] {
        let nameless = write(&once, &writer, blank).await.unwrap_err();
        assert!(matches!(nameless, RunError::Refused(Refusal::KeyInvalid { error: KeyError::Empty, .. })));
        assert_eq!(write(&once.clone().scope(blank), &writer, "a").await, refused(Refusal::ScopeMissing));
    }

    let asks = |part: &str| Fingerprint::builder().part(part).build();
    write(&once.clone().fingerprint(asks("x")), &writer, "a").await.unwrap();
    let other = write(&once.clone().fingerprint(asks("y")), &writer, "a").await;
    assert_eq!(other, refused(Refusal::KeyReused));

    let rejects = once.clone().reject_duplicates(true);
    write(&rejects, &writer, "b").await.unwrap();
    assert_eq!(write(&rejects, &writer, "b").await, refused(Refusal::DuplicateRequest));
    assert_eq!(writer.0.load(SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_kept_is_given_once() {
    let (_, once, writer) = once();
    let short = once.clone().value_limit(10);
    assert_eq!(write(&short, &writer, "a").await.unwrap().number, 1);
    assert_eq!(write(&short, &writer, "a").await, refused(Refusal::ResponseNotRetained));

    // No JSON has such a key.
    let odd = |_| async { Ok::<_, String>(std::collections::BTreeMap::from([(vec![1, 2], 3)])) };
    assert!(once.run("b", odd).await.is_ok());
    assert_eq!(once.run("b", odd).await, refused(Refusal::ResponseNotRetained));

    write(&once, &writer, "c").await.unwrap();
    let another_type = once.run("c", |_| async { Ok::<_, String>(7) }).await;
    assert_eq!(another_type, refused(Refusal::ResponseNotRetained));
}

#[tokio::test(start_paused = true)]
async fn after_a_crash() {
    let (_, once, writer) = once();
    crash(&once).await;
    assert_eq!(write(&once, &writer, "a").await.unwrap().number, 1);

    let store = MemoryStore::new();
    let once = Once::new(store.clone(), "invoices").policy(RunPolicy::at_most_once());
    crash(&once).await;
    assert_eq!(write(&once, &writer, "a").await, refused(Refusal::OutcomeUnknown));

    let found = Invoice { number: 99, lines: Vec::new() };
    let seen = store.inspect(&key("a")).await.unwrap().unwrap().claimant;
    let settlement = Settlement::new(Claimant::random(), Payload::value(&found).unwrap().into(), LEASE);
    store.settle_as(&key("a"), seen, &settlement).await.unwrap();
    assert_eq!(write(&once, &writer, "a").await, Ok(found));
}

/// A failure, and a crash, are remembered for the retention.
#[tokio::test(start_paused = true)]
async fn attempts_outlive_long_pauses() {
    let (_, once, writer) = once();
    let attempt = async || once.run("a", |operation| async move { Err::<u32, u32>(operation.attempt()) }).await;
    crash(&once).await;
    sleep(2 * 60 * 60 * SECOND).await;
    assert_eq!(attempt().await, Err(RunError::Failed(2)));
    sleep(2 * 60 * 60 * SECOND).await;
    assert_eq!(attempt().await, Err(RunError::Failed(3)));
    assert_eq!(write(&once, &writer, "a").await.unwrap().number, 1);
}

/// What one tenant leaves unfinished is not held against another.
#[tokio::test(start_paused = true)]
async fn unfinished_work_counts_for_its_scope() {
    let (_, once, writer) = once();
    let few = BackgroundTasks::new().limit_per_caller(1);
    let of = |tenant: &str| once.clone().background_tasks(few.clone()).scope(tenant);
    let (ann, bob) = (of("ann"), of("bob"));
    assert!(timeout(SECOND / 2, write(&ann, &writer, "a")).await.is_err());
    assert_eq!(write(&ann, &writer, "b").await, refused(Refusal::TooManyUnfinished));
    assert_eq!(write(&bob, &writer, "b").await.unwrap().number, 2);
    few.wait().await;
    assert_eq!(write(&ann, &writer, "b").await.unwrap().number, 3);
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_goes_on() {
    let (_, once, writer) = once();
    let background_tasks = BackgroundTasks::new();
    let once = once.background_tasks(background_tasks.clone());
    assert!(timeout(SECOND / 2, write(&once, &writer, "a")).await.is_err());
    background_tasks.wait().await;
    assert_eq!(write(&once, &writer, "a").await.unwrap().number, 1);
}

#[tokio::test(start_paused = true)]
async fn a_panic_passes_on_and_releases() {
    let (store, once, _) = once();
    let panics = async { once.run("a", |_| async { panic!("by order") as Result<(), String> }).await };
    let panics = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(panics)).await;
    assert!(panics.is_err());
    assert_eq!(store.inspect(&key("a")).await.unwrap().unwrap().state, State::Released);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away() {
    let store = FaultyStore::new(MemoryStore::new());
    let faults = store.faults();
    let (once, writer) = (Once::new(store, "invoices"), Writer::default());
    faults.on(StoreVerb::Claim).once().fail(StoreErrorKind::Unavailable);
    assert_eq!(write(&once, &writer, "a").await, refused(Refusal::StoreUnavailable));
    faults.on(StoreVerb::Claim).once().fail(StoreErrorKind::Full);
    assert_eq!(write(&once, &writer, "a").await, refused(Refusal::StoreFull));
    assert_eq!(write(&once, &writer, "a").await.unwrap().number, 1);
}

#[tokio::test(start_paused = true)]
async fn steps_have_keys_of_their_own() {
    let (store, orders, _) = once();
    let steps = Once::new(store, "steps");
    let effects = Arc::new(AtomicU32::new(0));
    let order = |fails: bool| {
        let (steps, effects) = (steps.clone(), effects.clone());
        orders.run("7f0c", move |order| async move {
            for step in ["charge-card", "send-mail"] {
                let effects = effects.clone();
                let done = |_| async move { Ok::<_, String>(effects.fetch_add(1, SeqCst)) };
                steps.run(&order.child_key(step), done).await.map_err(|error| error.to_string())?;
            }
            if fails { Err("the last step failed".to_owned()) } else { Ok(order.attempt()) }
        })
    };
    assert!(order(true).await.is_err());
    assert_eq!(order(false).await, Ok(2));
    assert_eq!(effects.load(SeqCst), 2);
}

#[test]
fn errors_are_told() {
    let error: RunError<std::fmt::Error> = RunError::Refused(Refusal::OutcomeUnknown);
    assert!(error.to_string().starts_with("outcome-unknown: "));
    assert_eq!(RunError::Failed("out of paper").to_string(), "out of paper");
}
