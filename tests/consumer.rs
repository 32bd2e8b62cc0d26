//! Messages are handled once, and each outcome says what to do with the delivery.
#![cfg(all(feature = "memory", feature = "testing"))]

use std::{
    future::{Ready, pending, ready},
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt};
use tower_idempotency::{
    BackgroundTasks, ConsumerLayer, Event, MemoryStore, Operation, Protection, Refusal, RunPolicy, Switch,
    consumer::{Action, Consumed},
    fingerprint::Fingerprint,
    key::KeyError,
    reconcile::Payload,
    store::{Claimant, Mismatch, RecordKey, Settlement, State, StoreAdmin, StoreErrorKind, StoreVerb},
    testing::{Faults, FaultyStore},
};

const LEASE: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(60 * 60);

#[derive(Clone, Debug, Default)]
struct Order {
    id: &'static str,
    amount: u32,
    takes: Duration,
    end: End,
    operation: Option<Operation>,
}

#[derive(Clone, Copy, Debug, Default)]
enum End {
    #[default]
    Pays,
    Fails,
    Panics,
    Hangs,
}

type Outcome = Consumed<u32, &'static str>;

/// Pays orders, if it was asked before whether it is ready.
#[derive(Default)]
struct Payouts {
    asked: bool,
    attempts: Arc<Mutex<Vec<u32>>>,
}

impl Clone for Payouts {
    fn clone(&self) -> Self {
        Self { asked: false, attempts: self.attempts.clone() }
    }
}

impl Service<Order> for Payouts {
    type Response = u32;
    type Error = &'static str;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<u32, &'static str>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
        self.asked = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, order: Order) -> Self::Future {
        assert!(std::mem::take(&mut self.asked), "called without having been ready");
        self.attempts.lock().unwrap().push(order.operation.as_ref().map_or(0, Operation::attempt));
        Box::pin(async move {
            sleep(order.takes).await;
            match order.end {
                End::Pays => Ok(order.amount),
                End::Fails => Err("the bank says no"),
                End::Panics => panic!("by order"),
                End::Hangs => pending().await,
            }
        })
    }
}

struct Lab {
    store: Arc<FaultyStore<MemoryStore>>,
    faults: Faults,
    layer: ConsumerLayer<Order>,
    payouts: Payouts,
    background_tasks: BackgroundTasks,
}

impl Lab {
    fn new(adjust: impl FnOnce(ConsumerLayer<Order>) -> ConsumerLayer<Order>) -> Self {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        let faults = store.faults();
        let background_tasks = BackgroundTasks::new();
        let id = |order: &Order| Ok(order.id.to_owned());
        let layer = ConsumerLayer::with_fingerprint(store.clone(), "payouts", id, |_| Fingerprint::OFF)
            .operation(|order, operation| order.operation = Some(operation))
            .background_tasks(background_tasks.clone());
        Self { store, faults, layer: adjust(layer), payouts: Payouts::default(), background_tasks }
    }

    async fn consume(&self, order: Order) -> Outcome {
        self.layer.layer(self.payouts.clone()).oneshot(order).await.unwrap()
    }

    /// Begins, and never ends.
    async fn crash(&self, order: Order) {
        let service = self.layer.clone().cancel_on_disconnect().layer(self.payouts.clone());
        let dies = tokio::time::timeout(SECOND, service.oneshot(Order { end: End::Hangs, ..order })).await;
        assert!(dies.is_err());
        sleep(LEASE).await;
    }

    fn attempts(&self) -> Vec<u32> {
        self.payouts.attempts.lock().unwrap().clone()
    }

    async fn state(&self, id: &str) -> Option<State> {
        self.store.inspect(&key(id)).await.unwrap().map(|record| record.state)
    }
}

fn key(id: &str) -> RecordKey {
    RecordKey::new("payouts", None, id).unwrap()
}

fn order(id: &'static str) -> Order {
    Order { id, amount: 7, ..Order::default() }
}

#[tokio::test(start_paused = true)]
async fn a_message_is_handled_once() {
    let lab = Lab::new(|layer| layer);
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    for _ in 0..3 {
        let again = lab.consume(order("a")).await;
        assert_eq!(again, Consumed::AlreadyDone);
        assert_eq!(again.action(), Action::Acknowledge);
    }
    assert_eq!(lab.consume(order("b")).await, Consumed::Executed(7));
    assert_eq!(lab.attempts(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_running_message_is_not_acknowledged() {
    let lab = Arc::new(Lab::new(|layer| layer.retry_after(5 * SECOND)));
    let first = tokio::spawn({
        let lab = lab.clone();
        async move { lab.consume(Order { takes: 20 * LEASE, ..order("a") }).await }
    });
    for _ in 0..19 {
        // The lease is renewed for as long as it takes.
        sleep(LEASE).await;
        let second = lab.consume(order("a")).await;
        assert_eq!(second.action(), Action::Requeue { delay: 5 * SECOND });
    }
    assert_eq!(first.await.unwrap(), Consumed::Executed(7));
    assert_eq!(lab.consume(order("a")).await, Consumed::AlreadyDone);
    assert_eq!(lab.attempts(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_may_wait() {
    let lab = Lab::new(|layer| layer.wait(LEASE));
    let (first, second) = tokio::join!(lab.consume(Order { takes: SECOND, ..order("a") }), lab.consume(order("a")));
    assert_eq!((first, second), (Consumed::Executed(7), Consumed::AlreadyDone));
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_given_back_for_longer_each_time() {
    let lab = Lab::new(|layer| layer);
    for (attempt, pause) in (1..).zip([1, 2, 4, 8, 16, 32, 60, 60]) {
        let failed = lab.consume(Order { end: End::Fails, ..order("a") }).await;
        let retry_after = Duration::from_secs(pause);
        let Consumed::Failed { error, attempt: made, .. } = failed else { panic!("{failed:?}") };
        assert_eq!((error, made), ("the bank says no", attempt));
        assert_eq!(failed.action(), Action::Requeue { delay: retry_after });
        assert_eq!(lab.state("a").await, Some(State::Released));
    }
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    assert_eq!(lab.attempts(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[tokio::test(start_paused = true)]
async fn a_poison_message_is_put_aside() {
    let lab = Lab::new(|layer| layer.attempts(3));
    let poison = || Order { end: End::Fails, ..order("a") };
    for _ in 0..2 {
        assert!(matches!(lab.consume(poison()).await, Consumed::Failed { .. }));
    }
    let exhausted = lab.consume(poison()).await;
    assert!(matches!(exhausted, Consumed::Exhausted { error: Some("the bank says no"), attempts: 3, .. }));
    assert_eq!(exhausted.action(), Action::DeadLetter);
    // Brought back once the bank was talked to, it runs.
    sleep(SECOND).await;
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    assert_eq!(lab.attempts(), [1, 2, 3, 1]);
}

/// A message comes again hours later, and its attempts have not been forgotten.
#[tokio::test(start_paused = true)]
async fn attempts_outlive_long_pauses() {
    let lab = Lab::new(|layer| layer.attempts(3));
    let poison = || Order { end: End::Fails, ..order("a") };
    lab.crash(order("a")).await;
    sleep(2 * HOUR).await;
    assert!(matches!(lab.consume(poison()).await, Consumed::Failed { .. }));
    sleep(2 * HOUR).await;
    assert!(matches!(lab.consume(poison()).await, Consumed::Exhausted { attempts: 3, .. }));
    assert_eq!(lab.attempts(), [1, 2, 3]);
}

/// What one tenant leaves unfinished is not held against another.
#[tokio::test(start_paused = true)]
async fn unfinished_messages_count_for_their_scope() {
    let tenant = |order: &Order| Some(order.id[..1].to_owned());
    let lab = Lab::new(|layer| layer.scope(tenant));
    let few = BackgroundTasks::new().limit_per_caller(2);
    let layer = lab.layer.clone().background_tasks(few.clone());
    let consume = |order: Order| layer.layer(lab.payouts.clone()).oneshot(order);
    for id in ["a1", "a2"] {
        assert!(tokio::time::timeout(SECOND, consume(Order { takes: LEASE, ..order(id) })).await.is_err());
    }
    assert_eq!(few.count(), 2);
    assert!(matches!(consume(order("a3")).await.unwrap(), Consumed::Unavailable { .. }));
    assert_eq!(consume(order("b1")).await.unwrap(), Consumed::Executed(7));
    few.wait().await;
    assert_eq!(consume(order("a3")).await.unwrap(), Consumed::Executed(7));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_kills_its_consumer_is_put_aside() {
    let lab = Lab::new(|layer| layer.attempts(2));
    for _ in 0..2 {
        lab.crash(order("a")).await;
    }
    assert!(matches!(lab.consume(order("a")).await, Consumed::Exhausted { error: None, attempts: 2, .. }));
    assert_eq!(lab.attempts(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_message_without_a_key_is_put_aside() {
    type Expected = fn(&Refusal) -> bool;

    let shops = [None, Some("shop"), Some(""), Some(" \u{a0}")];
    let lab = Lab::new(|layer| layer.scope(move |order| shops[(order.amount % 7) as usize].map(Into::into)));
    let order = |id| Order { amount: 1, ..order(id) };
    let long: &'static str = "x".repeat(256).leak();
    let is_empty = |why: &Refusal| matches!(why, Refusal::KeyInvalid { error: KeyError::Empty, .. });
    let is_too_long = |why: &Refusal| matches!(why, Refusal::KeyInvalid { error: KeyError::TooLong, .. });
    let has_no_scope = |why: &Refusal| *why == Refusal::ScopeMissing;
    let cases: [(Order, Expected); 6] = [
        (order(""), is_empty),
        // Blanks look alike to everybody: they would make one message of two.
        (order("  "), is_empty),
        (order(long), is_too_long),
        (Order { amount: 0, ..order("a") }, has_no_scope),
        (Order { amount: 2, ..order("a") }, has_no_scope),
        (Order { amount: 3, ..order("a") }, has_no_scope),
    ];
    for (order, is_expected) in cases {
        let nameless = lab.consume(order).await;
        assert!(matches!(&nameless, Consumed::Rejected { refusal, .. } if is_expected(refusal)), "{nameless:?}");
        assert_eq!(nameless.action(), Action::DeadLetter);
    }
    let none = |_: &Order| None::<String>;
    let layer = ConsumerLayer::with_fingerprint(lab.store.clone(), "payouts", none, |_| Fingerprint::OFF);
    let nameless = layer.layer(lab.payouts.clone()).oneshot(order("a")).await;
    assert!(matches!(nameless, Ok(Consumed::Rejected { refusal: Refusal::KeyMissing, .. })));
    assert!(lab.attempts().is_empty() && lab.faults.calls(StoreVerb::Claim) == 0);
}

#[tokio::test(start_paused = true)]
async fn another_content_under_the_same_key_is_put_aside() {
    let by_amount = |order: &Order| Fingerprint::builder().part(order.amount.to_be_bytes()).build();
    let lab = Lab::new(|layer| layer.fingerprint(by_amount));
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    let other = lab.consume(Order { amount: 8, ..order("a") }).await;
    assert!(matches!(other, Consumed::Mismatch { mismatch: Mismatch::Fingerprint, .. }), "{other:?}");
    assert_eq!(other.action(), Action::DeadLetter);
    assert_eq!(lab.consume(order("a")).await, Consumed::AlreadyDone);
}

/// Whatever comes with the same key meanwhile is acknowledged, and not looked at.
#[tokio::test(start_paused = true)]
async fn in_a_window_the_content_does_not_count() {
    let by_amount = |order: &Order| Fingerprint::builder().part(order.amount.to_be_bytes()).build();
    let lab = Lab::new(|layer| layer.fingerprint(by_amount).policy(RunPolicy::window(60 * SECOND)));
    let other = || Order { amount: 8, ..order("a") };
    assert!(matches!(lab.consume(Order { end: End::Fails, ..other() }).await, Consumed::Failed { .. }));
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    assert_eq!(lab.consume(other()).await, Consumed::AlreadyDone);
    sleep(60 * SECOND).await;
    assert_eq!(lab.consume(other()).await, Consumed::Executed(8));
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_is_switched_off_hands_every_message_on() {
    let lab = Lab::new(|layer| {
        layer.disabled(true).attempts(1).permanent_errors(|error: &&'static str| error.ends_with("for ever"))
    });
    for _ in 0..2 {
        assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
        let failed = lab.consume(Order { end: End::Fails, ..order("") }).await;
        assert!(matches!(failed, Consumed::Failed { error: "the bank says no", attempt: 1, .. }), "{failed:?}");
        assert_eq!(failed.action(), Action::Requeue { delay: SECOND });
    }
    assert_eq!(lab.attempts(), [0; 4], "there is no operation");
    let closed = |_: Order| ready(Err::<u32, _>("closed for ever"));
    let outcome = lab.layer.layer(tower::service_fn(closed)).oneshot(order("a")).await;
    assert!(matches!(outcome, Ok(Consumed::FailedPermanently { error: Some("closed for ever"), .. })));
    assert!(lab.faults.calls(StoreVerb::Claim) == 0 && lab.state("a").await.is_none());
    // One type, whatever the configuration says.
    let mut service = lab.layer.clone().disabled(false).layer(lab.payouts.clone());
    assert_eq!(service.ready().await.unwrap().call(order("a")).await, Ok(Consumed::Executed(7)));
    service = lab.layer.layer(service.into_inner());
    assert_eq!(service.ready().await.unwrap().call(order("a")).await, Ok(Consumed::Executed(7)));
}

#[tokio::test(start_paused = true)]
async fn a_switch_hands_messages_on_or_only_observes_them() {
    let switch = Switch::new();
    let lab = Lab::new(|layer| layer.switch(switch.clone()));
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    switch.set(Protection::Off);
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    assert_eq!(lab.consume(order("b")).await, Consumed::Executed(7));
    assert_eq!(lab.state("b").await, None);
    switch.set(Protection::ObserveOnly);
    for _ in 0..2 {
        assert_eq!(lab.consume(order("c")).await, Consumed::Executed(7));
        assert_eq!(lab.state("c").await, Some(State::Settled));
        let mismatch = Order { amount: 8, ..order("a") };
        assert_eq!(lab.consume(mismatch).await, Consumed::Executed(8));
        assert_eq!(lab.consume(order("")).await, Consumed::Executed(7), "it has no key");
    }
    switch.set(Protection::On);
    assert_eq!(lab.consume(order("c")).await, Consumed::AlreadyDone);
}

#[tokio::test(start_paused = true)]
async fn names_and_scopes_do_not_meet() {
    let lab = Lab::new(|layer| layer.scope(|order| Some(order.amount.to_string())));
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    assert_eq!(lab.consume(Order { amount: 8, ..order("a") }).await, Consumed::Executed(8));
    let id = |order: &Order| order.id.to_owned();
    let mails = ConsumerLayer::with_fingerprint(lab.store.clone(), "mails", id, |_| Fingerprint::OFF);
    assert_eq!(mails.layer(lab.payouts.clone()).oneshot(order("a")).await, Ok(Consumed::Executed(7)));
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_next_delivery_runs() {
    let lab = Lab::new(|layer| layer);
    lab.crash(order("a")).await;
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    assert_eq!(lab.attempts(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn at_most_once_a_crash_is_for_the_reconciler() {
    let lab = Lab::new(|layer| layer.policy(RunPolicy::at_most_once()));
    lab.crash(order("a")).await;
    let unknown = lab.consume(order("a")).await;
    assert_eq!(unknown, Consumed::OutcomeUnknown);
    assert_eq!(unknown.action(), Action::DeadLetter);

    for (payload, action) in [(Payload::done(), Action::Acknowledge), (Payload::failed(), Action::DeadLetter)] {
        let lab = Lab::new(|layer| layer.policy(RunPolicy::at_most_once()));
        lab.crash(order("a")).await;
        let seen = lab.store.inspect(&key("a")).await.unwrap().unwrap().claimant;
        let settlement = Settlement::new(Claimant::random(), payload.into(), LEASE);
        lab.store.settle_as(&key("a"), seen, &settlement).await.unwrap();
        let told = lab.consume(order("a")).await;
        assert!(matches!(told, Consumed::AlreadyDone | Consumed::FailedPermanently { error: None, .. }), "{told:?}");
        assert_eq!(told.action(), action);
    }
}

#[tokio::test(start_paused = true)]
async fn failures_that_are_kept_are_for_good() {
    let keeps: [fn(ConsumerLayer<Order>) -> ConsumerLayer<Order>; 3] = [
        |layer| layer.policy(RunPolicy::at_most_once()),
        |layer| layer.keep_errors(true),
        |layer| layer.permanent_errors(|error: &&'static str| error.starts_with("the bank")).attempts(1),
    ];
    for keep in keeps {
        let lab = Lab::new(keep);
        let failed = lab.consume(Order { end: End::Fails, ..order("a") }).await;
        assert!(matches!(failed, Consumed::FailedPermanently { error: Some("the bank says no"), .. }), "{failed:?}");
        assert_eq!(failed.action(), Action::DeadLetter);
        assert!(matches!(lab.consume(order("a")).await, Consumed::FailedPermanently { error: None, .. }));
        assert_eq!(lab.attempts(), [1]);
    }
}

#[tokio::test(start_paused = true)]
async fn errors_are_not_kept_by_default() {
    let lab = Lab::new(|layer| layer);
    let fails = || Order { end: End::Fails, ..order("a") };
    assert!(matches!(lab.consume(fails()).await, Consumed::Failed { attempt: 1, .. }));
    assert!(matches!(lab.consume(fails()).await, Consumed::Failed { attempt: 2, .. }));
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    assert_eq!(lab.consume(order("a")).await, Consumed::AlreadyDone);
}

#[tokio::test(start_paused = true)]
async fn an_error_of_another_kind_is_not_permanent() {
    let lab = Lab::new(|layer| layer.permanent_errors(|error: &&'static str| *error == "the account is closed"));
    let failed = lab.consume(Order { end: End::Fails, ..order("a") }).await;
    assert!(matches!(failed, Consumed::Failed { attempt: 1, .. }), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_can_never_succeed_says_so() {
    let lab = Lab::new(|layer| layer.attempts(3));
    let gives_up = |mut order: Order| -> Ready<Result<u32, &'static str>> {
        order.operation.take().unwrap().fail_permanently();
        ready(Err("no such account"))
    };
    let failed = lab.layer.layer(tower::service_fn(gives_up)).oneshot(order("a")).await;
    assert!(matches!(failed, Ok(Consumed::FailedPermanently { error: Some("no such account"), .. })));
    assert!(matches!(lab.consume(order("a")).await, Consumed::FailedPermanently { error: None, .. }));
    assert!(lab.attempts().is_empty());
}

/// A publisher must not be able to have another one's message acknowledged unread.
#[cfg(feature = "json")]
#[tokio::test(start_paused = true)]
async fn by_default_the_whole_message_counts() {
    #[derive(Clone, serde::Serialize)]
    struct Payout {
        number: &'static str,
        to: &'static str,
        #[serde(skip)]
        #[allow(dead_code, reason = "it stands for what differs from one delivery to the next")]
        redelivered: bool,
    }

    let layer = ConsumerLayer::new(MemoryStore::new(), "payouts", |payout: &Payout| payout.number.to_owned());
    let payouts = layer.layer(tower::service_fn(|payout: Payout| ready(Ok::<_, &'static str>(payout.to))));
    let payout = |to, redelivered| Payout { number: "7", to, redelivered };
    assert_eq!(payouts.clone().oneshot(payout("mallory", false)).await, Ok(Consumed::Executed("mallory")));
    let other = payouts.clone().oneshot(payout("ann", false)).await.unwrap();
    assert!(matches!(other, Consumed::Mismatch { mismatch: Mismatch::Fingerprint, .. }), "{other:?}");
    assert_eq!(other.action(), Action::DeadLetter);
    assert_eq!(payouts.oneshot(payout("mallory", true)).await, Ok(Consumed::AlreadyDone));
}

#[cfg(feature = "json")]
#[tokio::test(start_paused = true)]
async fn a_message_that_is_no_json_is_put_aside() {
    type Odd = std::collections::BTreeMap<Vec<u8>, u8>;

    let layer = ConsumerLayer::new(MemoryStore::new(), "odd", |_: &Odd| "a".to_owned());
    let service = layer.layer(tower::service_fn(|_: Odd| ready(Ok::<_, &'static str>(()))));
    let odd = service.oneshot(Odd::from([(vec![1], 2)])).await.unwrap();
    assert!(matches!(odd, Consumed::Rejected { refusal: Refusal::BodyInvalid { .. }, .. }), "{odd:?}");
}

/// In JSON all of these are `null`, and the second would be a duplicate of the first.
#[cfg(feature = "json")]
#[tokio::test(start_paused = true)]
async fn a_message_with_a_number_that_is_not_finite_is_put_aside() {
    let layer = ConsumerLayer::new(MemoryStore::new(), "rates", |_: &Option<f64>| "a".to_owned());
    let service = layer.layer(tower::service_fn(|rate: Option<f64>| ready(Ok::<_, &'static str>(rate.is_some()))));
    assert_eq!(service.clone().oneshot(None).await, Ok(Consumed::Executed(false)));
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let odd = service.clone().oneshot(Some(odd)).await.unwrap();
        assert!(matches!(odd, Consumed::Rejected { refusal: Refusal::BodyInvalid { .. }, .. }), "{odd:?}");
        assert_eq!(odd.action(), Action::DeadLetter);
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_passes_on_and_releases() {
    for (policy, state) in [(RunPolicy::new(), State::Released), (RunPolicy::at_most_once(), State::Settled)] {
        let lab = Arc::new(Lab::new(|layer| layer.policy(policy)));
        let panics = tokio::spawn({
            let lab = lab.clone();
            async move { lab.consume(Order { end: End::Panics, ..order("a") }).await }
        });
        assert!(panics.await.unwrap_err().is_panic());
        assert_eq!(lab.state("a").await, Some(state));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_or_full_gives_the_message_back() {
    for kind in [StoreErrorKind::Unavailable, StoreErrorKind::Full] {
        let lab = Lab::new(|layer| layer.retry_after(3 * SECOND));
        lab.faults.on(StoreVerb::Claim).once().fail(kind);
        let unavailable = lab.consume(order("a")).await;
        assert!(matches!(unavailable, Consumed::Unavailable { .. }), "{unavailable:?}");
        assert_eq!(unavailable.action(), Action::Requeue { delay: 3 * SECOND });
        assert!(lab.attempts().is_empty());
        assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    }
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_recorded_at_once_is_recorded_later() {
    let lab = Lab::new(|layer| layer.store_timeout(SECOND));
    lab.faults.on(StoreVerb::Settle).times(10).fail(StoreErrorKind::Unavailable);
    assert_eq!(lab.consume(order("a")).await, Consumed::Executed(7));
    assert!(matches!(lab.consume(order("a")).await, Consumed::InProgress { .. }));
    lab.faults.heal();
    lab.background_tasks.wait().await;
    assert_eq!(lab.consume(order("a")).await, Consumed::AlreadyDone);
}

#[tokio::test(start_paused = true)]
async fn work_whose_future_is_dropped_goes_on() {
    let lab = Lab::new(|layer| layer);
    let slow = Order { takes: LEASE, ..order("a") };
    let service = lab.layer.layer(lab.payouts.clone());
    assert!(tokio::time::timeout(SECOND, service.oneshot(slow)).await.is_err());
    assert_eq!(lab.background_tasks.count(), 1);
    lab.background_tasks.wait().await;
    assert_eq!(lab.consume(order("a")).await, Consumed::AlreadyDone);
    assert_eq!(lab.attempts(), [1]);
}

#[tokio::test(start_paused = true)]
async fn a_future_may_be_dropped_at_any_time() {
    let moment = Duration::from_millis(10);
    let mut begun = [0, 0];
    for after in (0..50).map(Duration::from_millis) {
        let lab = Lab::new(|layer| layer);
        for verb in [StoreVerb::Claim, StoreVerb::Settle, StoreVerb::Release] {
            lab.faults.on(verb).delay(moment);
        }
        let service = lab.layer.layer(lab.payouts.clone());
        let dropped = tokio::time::timeout(after, service.oneshot(Order { takes: moment, ..order("a") })).await;
        let runs = lab.attempts().len();
        begun[runs] += 1;
        lab.background_tasks.wait().await;
        assert_eq!(lab.attempts().len(), runs, "{after:?}");
        let expected = if runs == 1 { Consumed::AlreadyDone } else { Consumed::Executed(7) };
        assert_eq!(lab.consume(order("a")).await, expected, "{after:?}: {dropped:?}");
    }
    assert!(begun.iter().all(|&times| times >= 10), "{begun:?}");
}

#[tokio::test(start_paused = true)]
async fn an_overtaken_consumer_hears_what_the_record_says() {
    let lab = Arc::new(Lab::new(|layer| layer));
    let slow = |id: &'static str, takes: Duration| {
        let lab = lab.clone();
        tokio::spawn(async move { lab.consume(Order { takes, ..order(id) }).await })
    };
    let first = slow("a", 5 * SECOND);
    sleep(SECOND).await;
    lab.store.forget(&key("a")).await.unwrap();
    let second = slow("a", 8 * SECOND);
    assert!(matches!(first.await.unwrap(), Consumed::InProgress { .. }));
    assert_eq!(second.await.unwrap(), Consumed::Executed(7));

    let slower = slow("b", 5 * SECOND);
    sleep(SECOND).await;
    lab.store.forget(&key("b")).await.unwrap();
    assert_eq!(slow("b", SECOND).await.unwrap(), Consumed::Executed(7));
    assert_eq!(slower.await.unwrap(), Consumed::AlreadyDone);
}

#[tokio::test(start_paused = true)]
async fn the_operation_has_a_word() {
    let lab = Lab::new(|layer| layer);
    let discards = |mut order: Order| {
        order.operation.take().unwrap().discard();
        ready(Ok::<_, &'static str>(order.amount))
    };
    let keeps = |mut order: Order| -> Ready<Result<u32, &'static str>> {
        order.operation.take().unwrap().keep_for(SECOND);
        ready(Err("no"))
    };
    let discarded = lab.layer.layer(tower::service_fn(discards)).oneshot(order("a")).await;
    assert_eq!(discarded, Ok(Consumed::Executed(7)));
    assert_eq!(lab.state("a").await, Some(State::Released));
    let kept = lab.layer.layer(tower::service_fn(keeps)).oneshot(order("b")).await;
    assert!(matches!(kept, Ok(Consumed::FailedPermanently { error: Some("no"), .. })));
    sleep(SECOND).await;
    assert_eq!(lab.state("b").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_cannot_become_ready_is_an_error() {
    #[derive(Clone)]
    struct Broken;

    impl Service<Order> for Broken {
        type Response = u32;
        type Error = &'static str;
        type Future = Ready<Result<u32, &'static str>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            Poll::Ready(Err("closed"))
        }

        fn call(&mut self, _: Order) -> Self::Future {
            unreachable!()
        }
    }

    let lab = Lab::new(|layer| layer);
    assert_eq!(lab.layer.layer(Broken).oneshot(order("a")).await, Err("closed"));
    let began = Instant::now();
    assert_eq!(lab.state("a").await, None);
    assert!(began.elapsed().is_zero());
}

/// Collects what an observer receives, as text.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<String>>>);

impl Events {
    fn of_dead_letters(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let lines = self.0.clone();
        move |event| {
            if let Event::DeadLettered { route, key, reason, .. } = event {
                lines.lock().unwrap().push(format!("{route} {:?}: {reason}", key.map(RecordKey::key)));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_receives_each_message_that_is_put_aside() {
    let events = Events::default();
    let lab = Lab::new(|layer| {
        layer.attempts(2).permanent_errors(|error: &&str| *error == "gone").observer(events.of_dead_letters())
    });
    let _ = lab.consume(order("paid")).await;
    for _ in 0..2 {
        let _ = lab.consume(Order { end: End::Fails, ..order("poison") }).await;
    }
    let _ = lab.consume(order("")).await;
    let expected = ["payouts Some(\"poison\"): exhausted", "payouts None: rejected"];
    assert_eq!(*events.0.lock().unwrap(), expected);
}
