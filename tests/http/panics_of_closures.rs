//! Closures of the application that panic: nothing is claimed that was not, and nothing that runs is broken off.

use std::{
    future::Ready,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use tokio::{
    task::JoinError,
    time::{sleep, timeout},
};
use tower::Service;
use tower_idempotency::{
    Event, IdempotencyLayer, Observer, OnDuplicate, Policy, WhileRunning, fingerprint, key,
    policy::Reply,
    scope,
    service::RefusedRequest,
    store::{State, StoreErrorKind, StoreVerb},
};

use crate::common::{
    Seen,
    shop::{LATER, LEASE, Order, REQUEST, Shop, TO_THE_CLAIM, look, request},
    steps::{
        Leaving,
        Step::{self, Break, Data, Panic, Pend, Trailer},
        Steps, polls,
    },
};

const PAYLOAD: &str = "out of apples";

fn fall() -> ! {
    std::panic::panic_any(PAYLOAD)
}

/// Sends a request in a task of its own, which is to panic. Calling the service may do so, too.
async fn assert_panics(shop: &Shop, request: Request<Steps>, case: &str) {
    let mut service = shop.service.clone();
    let answer = tokio::spawn(async move { service.call(request).await }).await;
    let panic = answer.err().map_or_else(|| panic!("{case}: no panic"), JoinError::into_panic);
    assert_eq!(panic.downcast_ref(), Some(&PAYLOAD), "{case}");
}

fn renders(_: &RefusedRequest<'_>) -> Response<Bytes> {
    fall()
}

/// A case, the layer, and the body of the request that panics.
type Case = (&'static str, fn(IdempotencyLayer) -> IdempotencyLayer, &'static [Step]);

const LONG: &[Step] = &[Data("far too"), Pend, Data("long")];

#[tokio::test(start_paused = true)]
async fn before_the_claim_nothing_is_left() {
    let cases: &[Case] = &[
        ("key", |layer| layer.key(key::from_fn(|_| fall())), REQUEST),
        ("scope", |layer| layer.scope(scope::from_fn(|_| fall())), REQUEST),
        ("fingerprint", |layer| layer.fingerprint(fingerprint::from_fn(|_, _| fall())), REQUEST),
        ("verify: called", |layer| layer.verify(|_, _| -> Ready<_> { fall() }), REQUEST),
        ("verify: polled", |layer| layer.verify(|_, _| async { fall() }), REQUEST),
        ("request body, at once", |layer| layer, &[Panic(PAYLOAD)]),
        ("request body, later", |layer| layer, &[Data("two"), Pend, Panic(PAYLOAD)]),
        ("request body behind the limit", |layer| layer.request_limit(2), &[Data("two"), Pend, Panic(PAYLOAD)]),
        ("refused by the head", |layer| layer.key(key::header("x-key")).render(renders), REQUEST),
        ("a broken body", |layer| layer.render(renders), &[Data("two"), Break]),
        ("a long body", |layer| layer.request_limit(8).render(renders), LONG),
    ];
    for &(case, layer, body) in cases {
        let shop = Shop::new(Order::DONE, false, layer);
        assert_panics(&shop, request(body), case).await;
        assert_eq!(shop.runs.started(), 0, "{case}");
        assert!(shop.record().await.is_none(), "{case}");
        assert_eq!(shop.background_tasks.count(), 0, "{case}");
        // The layer is not broken by it.
        if case.starts_with("request body") || case == "a broken body" {
            let small: &[Step] = if case.ends_with("limit") { &[Data("1")] } else { REQUEST };
            let tried = tokio::spawn(shop.send(request(small))).await;
            assert_eq!(tried.is_ok(), !case.ends_with("limit"), "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn for_a_duplicate_the_first_one_is_not_touched() {
    let other: &[Step] = &[Data("three pears"), Trailer("x-sum", "1")];
    let running: &[Case] = &[
        ("render: it runs", |layer| layer.render(renders), REQUEST),
        ("render: another runs", |layer| layer.render(renders), other),
        ("reply: it runs", |layer| layer.while_running(WhileRunning::Respond(Reply::from_fn(|_| fall()))), REQUEST),
    ];
    let ended: &[Case] = &[
        ("render: it was", |layer| layer.policy(Policy::reject()).render(renders), REQUEST),
        ("render: another was", |layer| layer.render(renders), other),
        ("reply: it was", |layer| layer.on_duplicate(OnDuplicate::Respond(Reply::from_fn(|_| fall()))), REQUEST),
    ];
    for (cases, waits) in [(running, false), (ended, true)] {
        for &(case, layer, body) in cases {
            let shop = Shop::new(Order::DONE, false, layer);
            let first = tokio::spawn(shop.call());
            sleep(if waits { LATER } else { Order::DONE.takes / 2 }).await;
            assert_eq!(first.is_finished(), waits, "{case}");
            assert_panics(&shop, request(body), case).await;
            assert_eq!(look(first.await.unwrap()).await, Seen::first(201, "done"), "{case}");
            assert_eq!(shop.record().await.map(|record| record.state), Some(State::Settled), "{case}");
            assert_eq!((shop.runs.attempts(), shop.background_tasks.count()), (vec![1], 0), "{case}");
        }
    }
}

/// What is kept of a handler that panicked is an answer of the renderer's, which may panic itself.
#[tokio::test(start_paused = true)]
async fn the_renderer_of_a_panic_may_panic() {
    for client_gone in [false, true] {
        let layer = |layer: IdempotencyLayer| layer.policy(Policy::at_most_once()).render(|_| panic!("the renderer's"));
        let shop = Shop::with(false, layer, |_| async {
            sleep(LEASE).await;
            fall()
        });
        if client_gone {
            let mut call = shop.call();
            assert!(polls(&mut call, TO_THE_CLAIM, Leaving::Waiting).await.is_none());
            drop(call);
            assert_eq!(shop.background_tasks.count(), 1);
            shop.background_tasks.wait().await;
        } else {
            assert_panics(&shop, request(REQUEST), "the handler").await;
        }
        assert_eq!(shop.record().await.map(|record| record.state), Some(State::Settled));
        let (seen, _) = shop.retry().await;
        assert_eq!((seen.replayed, &*seen.problem()), (true, "handler-failed"));
    }
}

/// Panics at each event, and remembers their names.
#[derive(Clone, Debug, Default)]
struct Touchy(Arc<Mutex<Vec<String>>>);

impl Observer for Touchy {
    fn on_event(&self, event: &Event<'_>) {
        let event = format!("{event:?}");
        let name = event.split([' ', '{']).next().unwrap_or_default();
        self.0.lock().unwrap().push(name.to_owned());
        fall();
    }
}

/// Who watches must not change what happens.
#[tokio::test(start_paused = true)]
async fn an_observer_may_panic() {
    let touchy = Touchy::default();
    let watched = touchy.clone();
    let shop = Shop::new(Order::DONE, false, move |layer| layer.observer(watched));
    let events = || std::mem::take(&mut *touchy.0.lock().unwrap());

    // A renewal fails while the handler runs, and the first try to settle.
    for verb in [StoreVerb::Renew, StoreVerb::Settle] {
        shop.faults.on(verb).once().fail(StoreErrorKind::Unavailable);
    }
    let first = shop.call().await;
    assert_eq!(look(first).await, Seen::first(201, "done"));
    assert_eq!(events(), ["Claimed", "StoreFailed", "StoreFailed", "Settled"]);
    assert_eq!(shop.retry().await.0, Seen::replay(201, "done"));
    assert_eq!(events(), ["Replayed"]);
    let refused = shop.send(request(&[Data("pears")])).await;
    assert_eq!(look(refused).await.problem(), "key-reused");
    assert_eq!(events(), ["Refused"]);
}

#[tokio::test(start_paused = true)]
async fn of_an_observer_whose_client_left() {
    for thread_panics in [false, true] {
        let touchy = Touchy::default();
        let watched = touchy.clone();
        let shop = Shop::new(Order::DONE, false, move |layer| layer.observer(watched));
        let mut call = shop.call();
        let leaves = tokio::spawn(async move {
            assert!(polls(&mut call, TO_THE_CLAIM, Leaving::Waiting).await.is_none());
            if thread_panics {
                fall();
            }
        });
        assert_eq!(leaves.await.is_err(), thread_panics);
        timeout(LATER, shop.background_tasks.wait()).await.expect("it ends");
        assert_eq!(*touchy.0.lock().unwrap(), ["Claimed", "Detached", "Settled", "BackgroundEnded"]);
        assert_eq!(shop.retry().await.0, Seen::replay(201, "done"));
    }
}

#[tokio::test(start_paused = true)]
async fn of_an_observer_while_a_claim_is_unanswered() {
    let touchy = Touchy::default();
    let watched = touchy.clone();
    let shop = Shop::new(Order::DONE, true, move |layer| layer.observer(watched));
    shop.faults.on(StoreVerb::Claim).once().after_effect().delay(Duration::from_secs(7));
    assert_eq!(shop.call().await.status(), 503);
    timeout(LATER, shop.background_tasks.wait()).await.expect("the ghost is disarm");
    assert_eq!(*touchy.0.lock().unwrap(), ["StoreFailed", "Refused", "Withdrawn"]);
    assert_eq!(shop.retry().await.0, Seen::first(201, "done"));
}
