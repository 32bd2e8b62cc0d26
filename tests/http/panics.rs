//! The handler and the application's closures may panic, at any time.

use std::{any::Any, future::Future, pin::Pin, time::Duration};

use http::{Request, Response};
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};
use tower::Service;
use tower_idempotency::{
    Keep, Policy,
    service::RequestBody,
    store::{State, StoreErrorKind, StoreVerb},
};

use crate::common::{
    Counter, Seen,
    shop::{Answer, LATER, LEASE, Order, REQUEST, Shop, request},
    steps::{Leaving, Step, Steps, polls},
};

const PAYLOAD: &str = "out of apples";
const SECOND: Duration = Duration::from_secs(1);

fn fall() -> ! {
    std::panic::panic_any(PAYLOAD)
}

/// The place at which the handler of the first try panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Call,
    FirstPoll,
    Later,
    ResponseBody,
    /// In the policy's closure.
    Keep,
}

type Handling = Pin<Box<dyn Future<Output = Response<Steps>> + Send>>;

fn handler(place: Place, calls: Counter) -> impl Fn(Request<RequestBody<Steps>>) -> Handling + Clone + Send {
    move |request| {
        let first = calls.next() == 1 && !request.headers().contains_key("x-other");
        let falls = move |here| {
            if first && place == here {
                fall();
            }
        };
        falls(Place::Call);
        Box::pin(async move {
            falls(Place::FirstPoll);
            yield_now().await;
            sleep(SECOND).await;
            falls(Place::Later);
            let broken = first && place == Place::ResponseBody;
            let body: &[Step] =
                if broken { &[Step::Data("do"), Step::Pend, Step::Panic(PAYLOAD)] } else { Order::DONE.body };
            Response::builder().status(201).body(Steps::new(body)).unwrap()
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    AtMostOnce,
    KeepsEverything,
}

fn policy(kind: Kind, place: Place) -> Policy {
    let policy = match kind {
        Kind::Plain => Policy::replay(),
        Kind::AtMostOnce => Policy::at_most_once(),
        Kind::KeepsEverything => Policy::replay().keep(Keep::EVERYTHING),
    };
    let asked = Counter::default();
    match place {
        Place::Keep => policy.keep(Keep::when(move |_| if asked.next() == 1 { fall() } else { true })),
        _ => policy,
    }
}

/// Runs it in a task of its own. Calling the service may panic, too.
async fn panic_of(shop: &Shop, request: Request<Steps>) -> Option<Box<dyn Any + Send>> {
    let mut service = shop.service.clone();
    let answer: Result<Result<Answer, _>, _> = tokio::spawn(async move { service.call(request).await }).await;
    answer.err().map(tokio::task::JoinError::into_panic)
}

fn assert_payload(panic: Option<Box<dyn Any + Send>>, case: &str) {
    let panic = panic.unwrap_or_else(|| panic!("{case}: no panic"));
    assert_eq!(panic.downcast_ref(), Some(&PAYLOAD), "{case}");
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_panic_in_every_place() {
    use Place::{Call, FirstPoll, Keep, Later, ResponseBody};
    for kind in [Kind::Plain, Kind::AtMostOnce, Kind::KeepsEverything] {
        for place in [Call, FirstPoll, Later, ResponseBody, Keep] {
            if (kind, place) == (Kind::KeepsEverything, Keep) {
                continue; // it has no closure
            }
            handler_panics(kind, place, false).await;
            if !matches!(place, Call | FirstPoll) {
                handler_panics(kind, place, true).await;
            }
        }
    }
}

async fn handler_panics(kind: Kind, place: Place, client_gone: bool) {
    let case = format!("{kind:?}, {place:?}, client gone: {client_gone}");
    let calls = Counter::default();
    let shop = Shop::with(false, |layer| layer.policy(policy(kind, place)).lease(LEASE), handler(place, calls.clone()));
    for verb in [StoreVerb::Claim, StoreVerb::Settle, StoreVerb::Release] {
        shop.faults.on(verb).delay(SECOND / 10);
    }
    if client_gone {
        let mut call = shop.call();
        while calls.get() == 0 {
            assert!(polls(&mut call, 1, Leaving::Woken).await.is_none(), "{case}");
        }
        drop(call);
        shop.background_tasks.wait().await;
    } else {
        assert_payload(panic_of(&shop, request(REQUEST)).await, &case);
    }
    assert_eq!(shop.background_tasks.count(), 0, "{case}");

    let record = shop.record().await.expect("a record");
    let (seen, after) = shop.retry().await;
    if kind != Kind::Plain {
        assert_eq!((record.state, seen.replayed), (State::Settled, true), "{case}");
        assert_eq!(seen.problem(), "handler-failed", "{case}");
        return assert_eq!(calls.get(), 1, "{case}");
    }
    let (state, put_off) = if client_gone { (State::Running, LEASE) } else { (State::Released, Duration::ZERO) };
    assert_eq!(record.state, state, "{case}");
    assert!(after < put_off + 3 * SECOND, "{case}: put off for {after:?}");
    assert!(client_gone == (after > LEASE / 2), "{case}: put off for {after:?}");
    assert_eq!((seen, calls.get()), (Seen::first(201, "done"), 2), "{case}");
    let record = shop.record().await.expect("a record");
    assert_eq!((record.state, record.attempt, record.takeover), (State::Settled, 2, client_gone), "{case}");
}

#[tokio::test(start_paused = true)]
async fn other_requests_go_on_after_a_panic() {
    let calls = Counter::default();
    let shop = Shop::with(false, |layer| layer, handler(Place::Later, calls.clone()));
    let falls = tokio::spawn(shop.call());
    while calls.get() == 0 {
        yield_now().await;
    }
    let mut other = request(&[]);
    other.headers_mut().insert("idempotency-key", "other".parse().unwrap());
    let other = tokio::spawn(shop.send(other));
    assert_payload(falls.await.err().map(tokio::task::JoinError::into_panic), "the first");
    assert_eq!(other.await.unwrap().status(), 201);
}

/// The future of a layer further out panics while ours is pending; then ours is dropped in a thread that panics.
#[tokio::test(start_paused = true)]
async fn of_a_layer_further_out() {
    for over_a_wire in [false, true] {
        let shop = Shop::new(Order::DONE, over_a_wire, |layer| layer);
        let (mut call, runs) = (shop.call(), shop.runs.clone());
        let outer = tokio::spawn(async move {
            while runs.started() == 0 {
                assert!(polls(&mut call, 1, Leaving::Woken).await.is_none());
            }
            fall();
        });
        assert_payload(outer.await.err().map(tokio::task::JoinError::into_panic), "the outer layer");
        assert_eq!((shop.background_tasks.count(), shop.runs.ended.get()), (1, 0));
        timeout(LATER, shop.background_tasks.wait()).await.expect("the work ends");
        assert_eq!(shop.retry().await.0, Seen::replay(201, "done"));
        assert_eq!(shop.runs.attempts(), [1]);
    }
}

/// It goes out as a stream, and the record is settled before it is read.
#[tokio::test(start_paused = true)]
async fn of_a_stream_behind_its_tombstone() {
    let order = Order {
        content_type: "text/event-stream",
        body: &[Step::Data("event"), Step::Pend, Step::Panic(PAYLOAD)],
        ..Order::DONE
    };
    let shop = Shop::new(order, false, |layer| layer);
    let answer = shop.call().await;
    assert_eq!(shop.record().await.map(|record| record.state), Some(State::Settled));
    let reading = tokio::spawn(http_body_util::BodyExt::collect(answer.into_body()));
    assert_payload(reading.await.err().map(tokio::task::JoinError::into_panic), "the stream");
    assert_eq!(shop.retry().await.0.problem(), "response-not-retained");
}

/// A panic that cannot be recorded at once reaches the client all the same, and is recorded later.
#[tokio::test(start_paused = true)]
async fn while_the_store_is_away() {
    for policy in [Policy::replay(), Policy::at_most_once()] {
        let handler = handler(Place::Later, Counter::default());
        let shop = Shop::with(false, |layer| layer.policy(policy).lease(LEASE), handler);
        for verb in [StoreVerb::Settle, StoreVerb::Release] {
            shop.faults.on(verb).fail(StoreErrorKind::Unavailable);
        }
        assert_payload(panic_of(&shop, request(REQUEST)).await, "the handler");
        assert_eq!(shop.record().await.map(|record| record.state), Some(State::Running));
        sleep(LATER).await;
        shop.faults.heal();
        timeout(LATER, shop.background_tasks.wait()).await.expect("it is recorded");
        assert_ne!(shop.record().await.map(|record| record.state), Some(State::Running));
    }
}
