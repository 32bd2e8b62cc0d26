//! The lines of `docs/mistakes.md` about what goes wrong while a service runs, logged each time, with route and remedy.

use std::{convert::Infallible, future::pending, sync::mpsc, thread, time::Duration};

use axum::{Router, routing::post};
use tokio::{
    runtime::Builder,
    time::{sleep, timeout},
};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    BackgroundTasks, ConsumerLayer, IdempotencyLayer, MemoryStore, Operation, fingerprint::Fingerprint,
    testing::FaultyStore,
};

use crate::{
    common::see,
    mistakes::{app, assert_one, layer, order, twice},
    tracing_events::Heard,
};

/// It blocks for real: there is no clock that could be turned.
#[tokio::test]
async fn a_handler_that_blocks_past_its_lease() {
    let block = |then_waits: bool| {
        post(move || async move {
            thread::sleep(Duration::from_millis(60));
            if then_waits {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            "done"
        })
    };
    for then_waits in [false, true] {
        let app = Router::new().route("/orders", block(then_waits)).layer(layer().lease(Duration::from_millis(20)));
        let (statuses, heard) = twice(app, order).await;
        assert_eq!(statuses, [200, 200]);
        assert_one(&heard, "/orders", "`tokio::task::spawn_blocking`");
    }
}

/// The same with a duplicate that comes in between, on another thread: it takes the claim over, and both are logged.
#[test]
fn a_handler_that_blocks_past_its_lease_is_taken_over() {
    let (heard, _listening) = Heard::listen();
    let (begun, has_begun) = mpsc::channel();
    let handler = post(move |operation: Operation| async move {
        if operation.attempt() == 1 {
            begun.send(()).unwrap();
            thread::sleep(Duration::from_millis(600));
        }
        format!("attempt {}", operation.attempt())
    });
    let app = Router::new().route("/orders", handler).layer(layer().lease(Duration::from_millis(100)));
    let ask = |app: Router| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { see(app.oneshot(order()).await.unwrap()).await })
    };
    let first = thread::spawn({
        let (app, heard) = (app.clone(), heard.clone());
        move || {
            let _listening = heard.listen_here();
            ask(app)
        }
    });
    has_begun.recv().unwrap();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(ask(app).body, "attempt 2");
    assert_one(&heard.take(), "/orders", "choose `Policy::at_most_once()`");
    // Its client receives what the record says.
    assert_eq!(first.join().unwrap().body, "attempt 2");
    let heard = heard.take();
    assert_one(&heard[..1], "/orders", "`tokio::task::spawn_blocking`");
    assert_one(&heard[1..], "/orders", "Choose a longer `.lease(..)`");
}

/// The engine logs, so messages and functions are logged too.
#[tokio::test]
async fn messages_and_functions_that_block_past_their_lease() {
    let block = || async {
        thread::sleep(Duration::from_millis(60));
        Ok::<_, Infallible>(7)
    };
    let lease = Duration::from_millis(20);
    let (heard, _listening) = Heard::listen();
    let key = |order: &String| order.clone();
    let messages = ConsumerLayer::with_fingerprint(MemoryStore::new(), "payouts", key, |_| Fingerprint::OFF);
    let consumer = messages.lease(lease).layer(service_fn(move |_: String| block()));
    drop(consumer.oneshot("a".to_owned()).await.unwrap());
    assert_one(&heard.take(), "payouts", "`tokio::task::spawn_blocking`");
    #[cfg(feature = "json")]
    {
        let functions = tower_idempotency::Once::new(MemoryStore::new(), "invoices").lease(lease);
        functions.run("a", move |_| block()).await.unwrap();
        assert_one(&heard.take(), "invoices", "`tokio::task::spawn_blocking`");
    }
}

#[test]
fn background_tasks_that_nobody_waits_for() {
    let (heard, _listening) = Heard::listen();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = MemoryStore::new();
    let layer = IdempotencyLayer::new(store.clone()).unscoped();
    let app = Router::new().route("/orders", post(std::future::pending::<String>)).layer(layer);
    runtime.block_on(async {
        let left = tokio::time::timeout(Duration::from_millis(50), app.oneshot(order())).await;
        assert!(left.is_err(), "its client has left");
        tokio::task::yield_now().await;
    });
    assert_eq!(heard.take(), [""; 0]);
    drop(runtime);
    assert_one(&heard.take(), "/orders", "await `BackgroundTasks::wait()`");
    // A memory store that ends with the runtime is logged as well.
    drop(store);
    let heard = heard.take();
    assert!(heard.len() == 1 && heard[0].contains("a memory store was dropped"), "{heard:?}");
}

/// A client that leaves.
async fn leave(app: Router) {
    assert!(timeout(Duration::from_secs(1), app.oneshot(order())).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn attached_work_that_is_dropped() {
    let (heard, _listening) = Heard::listen();
    let app = Router::new().route("/orders", post(pending::<String>)).layer(layer().cancel_on_disconnect());
    for _ in 0..2 {
        leave(app.clone()).await;
        assert_one(&heard.take(), "/orders", "without `.cancel_on_disconnect()`");
        sleep(Duration::from_secs(60)).await;
        // The next try runs, and says so.
        leave(app.clone()).await;
        let heard = heard.take();
        assert_one(&heard[..1], "/orders", "claimed after the lease");
        assert_one(&heard[1..], "/orders", "without `.cancel_on_disconnect()`");
        sleep(Duration::from_secs(60 * 60 * 48)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_background_task_that_takes_longer_than_it_may() {
    let (heard, _listening) = Heard::listen();
    let short = BackgroundTasks::new().max_duration(Duration::from_secs(9));
    let app = Router::new().route("/orders", post(pending::<String>)).layer(layer().background_tasks(short));
    leave(app.clone()).await;
    assert_eq!(heard.take(), [""; 0]);
    sleep(Duration::from_secs(10)).await;
    assert_one(&heard.take(), "/orders", "choose a longer `BackgroundTasks::max_duration(..)`");
}

#[tokio::test]
async fn a_store_that_fails_open() {
    let store = FaultyStore::new(MemoryStore::new());
    store.faults().on_all().fail(tower_idempotency::store::StoreErrorKind::Unavailable);
    let open = IdempotencyLayer::new(store).unscoped().fail_open();
    let (statuses, heard) = twice(app(open, || "done"), order).await;
    assert_eq!(statuses, [200, 200]);
    assert_each_is_told(&heard, "Without `.fail_open()`");
}

#[tokio::test]
async fn a_full_store() {
    let full = || IdempotencyLayer::new(MemoryStore::builder().capacity(0).build()).unscoped();
    let (statuses, heard) = twice(app(full(), || "done"), order).await;
    assert_eq!(statuses, [503, 503]);
    for line in &heard {
        assert_one(std::slice::from_ref(line), "/orders", "see `capacity`");
    }
    assert_eq!(heard.len(), 2, "{heard:#?}");
    let (statuses, heard) = twice(app(full().fail_open_when_full(), || "done"), order).await;
    assert_eq!(statuses, [200, 200]);
    assert_each_is_told(&heard, "`.fail_open_when_full()`");
}

/// Of both requests: what the store said, and what became of that.
fn assert_each_is_told(heard: &[String], remedy: &str) {
    assert_eq!(heard.len(), 4, "{heard:#?}");
    for told in heard.chunks(2) {
        assert_one(&told[..1], "/orders", "the store failed");
        assert_one(&told[1..], "/orders", remedy);
    }
}
