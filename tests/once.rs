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
    Fingerprint, Keep, KeyError, Leftovers, MemoryStore, Once, Operation, Payload, Policy, RecordKey, Refusal,
    StoreErrorKind, StoreVerb, WhileRunning,
    run::RunError,
    store::{Claimant, Operator, Settlement, State},
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

/// Begins, and is never heard of again.
async fn crash(once: &Once) {
    let hangs = once.clone().attached().run("a", |_| pending::<Result<Invoice, String>>());
    assert!(timeout(SECOND, hangs).await.is_err());
    sleep(LEASE).await;
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
    for policy in [Policy::at_most_once(), Policy::replay().keep(Keep::Everything)] {
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
async fn a_closure_sees_the_value() {
    let (store, once, writer) = once();
    let even = Keep::when(|answer| serde_json::from_slice::<Invoice>(answer.body()).unwrap().number.is_multiple_of(2));
    let once = once.policy(Policy::replay().keep(even));
    for number in [1, 2, 2] {
        assert_eq!(write(&once, &writer, "a").await.unwrap().number, number);
    }
    assert_eq!(store.inspect(&key("a")).await.unwrap().unwrap().attempt, 2);
}

#[tokio::test(start_paused = true)]
async fn while_it_runs() {
    let (_, once, writer) = once();
    let (first, second) = tokio::join!(write(&once, &writer, "a"), write(&once, &writer, "a"));
    assert_eq!(first.unwrap().number, 1);
    assert_eq!(second, refused(Refusal::RequestInProgress(LEASE)));

    let waiting = once.policy(Policy::replay().while_running(WhileRunning::Wait(LEASE)));
    let (first, second) = tokio::join!(write(&waiting, &writer, "b"), write(&waiting, &writer, "b"));
    assert_eq!((first.unwrap().number, second.unwrap().number), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused() {
    let (_, once, writer) = once();
    assert_eq!(write(&once, &writer, "").await, refused(Refusal::KeyInvalid(KeyError::Empty)));

    let asks = |part: &str| Fingerprint::builder().part(part).build();
    write(&once.clone().fingerprint(asks("x")), &writer, "a").await.unwrap();
    let other = write(&once.clone().fingerprint(asks("y")), &writer, "a").await;
    assert_eq!(other, refused(Refusal::KeyReused));

    let rejects = once.clone().policy(Policy::reject());
    write(&rejects, &writer, "b").await.unwrap();
    assert_eq!(write(&rejects, &writer, "b").await, refused(Refusal::DuplicateRequest));
    assert_eq!(writer.0.load(SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_value_that_is_not_kept_is_given_once() {
    let (_, once, writer) = once();
    let short = once.clone().policy(Policy::replay().response_limit(10));
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
    let once = Once::new(store.clone(), "invoices").policy(Policy::at_most_once());
    crash(&once).await;
    assert_eq!(write(&once, &writer, "a").await, refused(Refusal::OutcomeUnknown));

    let found = Invoice { number: 99, lines: Vec::new() };
    let seen = store.inspect(&key("a")).await.unwrap().unwrap().claimant;
    let settlement = Settlement::new(Claimant::random(), Payload::value(&found).unwrap().into(), LEASE);
    store.settle_as(&key("a"), seen, &settlement).await.unwrap();
    assert_eq!(write(&once, &writer, "a").await, Ok(found));
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_goes_on() {
    let (_, once, writer) = once();
    let leftovers = Leftovers::new();
    let once = once.leftovers(leftovers.clone());
    assert!(timeout(SECOND / 2, write(&once, &writer, "a")).await.is_err());
    leftovers.drained().await;
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
