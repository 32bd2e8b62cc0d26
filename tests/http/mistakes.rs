//! The lines of `docs/mistakes.md` that a warning tells of: one warning for each route and mistake, with the remedy.

use std::{thread, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    http::{Request, StatusCode},
    response::IntoResponse,
    routing::{get, post},
};
use futures_util::stream;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, Keep, MemoryStore, Operation, Policy, Preset, key,
    testing::{FaultyStore, ManualClock},
};

use crate::{
    common::{post as send, see},
    heard::Heard,
};

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new()).unscoped()
}

/// Sends the same request twice; gives the statuses, and what was heard.
async fn twice(app: Router, request: impl Fn() -> Request<Body>) -> (Vec<StatusCode>, Vec<String>) {
    let (heard, _listening) = Heard::listen();
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(app.clone().oneshot(request()).await.unwrap().status());
    }
    (statuses, heard.take())
}

fn assert_one(heard: &[String], route: &str, remedy: &str) {
    assert_eq!(heard.len(), 1, "{heard:#?}");
    assert!(heard[0].starts_with("WARN") && heard[0].contains(remedy), "{heard:#?}");
    assert!(
        heard[0].contains(&format!("route={route:?}")) || heard[0].contains(&format!("route={route}")),
        "{heard:#?}"
    );
}

fn order() -> Request<Body> {
    send("/orders", "k", "")
}

fn app<R: IntoResponse + Send + 'static>(
    layer: IdempotencyLayer,
    answer: impl Fn() -> R + Clone + Send + Sync + 'static,
) -> Router {
    Router::new().route("/orders", post(move || std::future::ready(answer()))).layer(layer)
}

#[tokio::test]
async fn authentication_inside_the_layer() {
    let told_nothing = IdempotencyLayer::new(MemoryStore::new());
    let request = || {
        let mut request = order();
        request.headers_mut().insert("authorization", "Bearer ann".parse().unwrap());
        request
    };
    let (statuses, heard) = twice(app(told_nothing, || StatusCode::UNAUTHORIZED), request).await;
    assert_eq!(statuses, [401, 401]);
    assert_one(&heard, "/orders", "put the authentication in a layer outside");
    // Whose callers prove themselves in the body, or whose scope says who asks, may answer so.
    let (_, heard) = twice(app(layer(), || StatusCode::UNAUTHORIZED), order).await;
    assert_eq!(heard, [""; 0]);
}

#[tokio::test]
async fn a_timeout_inside_the_layer() {
    for status in [StatusCode::REQUEST_TIMEOUT, StatusCode::GATEWAY_TIMEOUT] {
        let (_, heard) = twice(app(layer(), move || status), order).await;
        assert_one(&heard, "/orders", "put the timeout outside this layer");
    }
    // Kept, it is replayed.
    let (_, heard) = twice(app(layer().keep(Keep::Everything), || StatusCode::GATEWAY_TIMEOUT), order).await;
    assert_eq!(heard, [""; 0]);
}

#[tokio::test]
async fn an_answer_that_is_not_kept() {
    let long = || "a".repeat(2000);
    let (statuses, heard) = twice(app(layer().response_limit(1000), long), order).await;
    assert_eq!(statuses, [200, 409]);
    assert_one(&heard, "/orders", "raise `.response_limit(..)`");

    let events = || ([("content-type", "text/event-stream")], "data: 1\n\n");
    let (statuses, heard) = twice(app(layer(), events), order).await;
    assert_eq!(statuses, [200, 409]);
    assert_one(&heard, "/orders", "`Operation::stream()`");

    // On purpose, and where nobody asks for it.
    let streams = post(|operation: Operation| async move {
        operation.stream();
        Body::from_stream(stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"a"))]))
    });
    let (_, heard) = twice(Router::new().route("/orders", streams.layer(layer())), order).await;
    assert_eq!(heard, [""; 0]);
    let (_, heard) = twice(app(layer().policy(Policy::reject().response_limit(1000)), long), order).await;
    assert_eq!(heard, [""; 0]);
}

#[tokio::test]
async fn head_of_a_protected_get() {
    let layer = layer().methods([axum::http::Method::GET]).key(key::query("id"));
    let app = Router::new().route("/orders", get(|| async { "ordered" }).layer(layer));
    let ask = || Request::head("/orders?id=7").body(Body::empty()).unwrap();
    let (statuses, heard) = twice(app, ask).await;
    assert_eq!(statuses, [200, 200]);
    assert_one(&heard, "/orders", "route `HEAD` to something that does not write");
}

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

#[test]
fn leftovers_that_nobody_waits_for() {
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
    assert_one(&heard.take(), "/orders", "await `Leftovers::drained()`");
    // A memory store that goes with the runtime is told of as well.
    drop(store);
    let heard = heard.take();
    assert!(heard.len() == 1 && heard[0].contains("a memory store was dropped"), "{heard:?}");
}

#[test]
fn a_policy_after_what_it_replaces() {
    let (heard, _listening) = Heard::listen();
    drop(layer().policy(Policy::reject()).lease(Duration::from_secs(10)));
    // A clone is a new beginning, as where routes adjust one layer.
    drop(layer().lease(Duration::from_secs(10)).clone().policy(Policy::reject()));
    assert_eq!(heard.take(), [""; 0]);
    drop(layer().lease(Duration::from_secs(10)).policy(Policy::reject()));
    let heard = heard.take();
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].contains("call `policy(..)` first") && heard[0].contains("mistakes.rs"), "{heard:?}");
}

#[test]
#[should_panic(expected = "a retention of 0ns")]
fn a_retention_of_nothing() {
    drop(layer().retention(Duration::ZERO));
}

#[tokio::test]
async fn what_the_layer_is_told_to_risk_is_told_each_time() {
    let store = FaultyStore::new(MemoryStore::new());
    store.faults().on_all().fail(tower_idempotency::StoreErrorKind::Unavailable);
    let open = IdempotencyLayer::new(store).unscoped().fail_open();
    let (statuses, heard) = twice(app(open, || "done"), order).await;
    assert_eq!(statuses, [200, 200]);
    assert!(heard.iter().filter(|line| line.contains("let through unprotected")).count() == 2, "{heard:?}");
}

#[tokio::test]
async fn an_operation_without_its_layer() {
    let (heard, _listening) = Heard::listen();
    let app = Router::new().route("/orders", post(|_: Operation| async {}));
    assert_eq!(app.oneshot(order()).await.unwrap().status(), 500);
    let heard = heard.take();
    assert!(
        heard.len() == 1 && heard[0].starts_with("ERROR") && heard[0].contains("IdempotencyLayer::new"),
        "{heard:?}"
    );
}

#[tokio::test]
async fn no_key_and_a_malformed_one() {
    let app = app(layer(), || "done");
    for (key, problem) in [(None, "key-missing"), (Some(""), "key-invalid"), (Some("a,b"), "key-invalid")] {
        let mut request = Request::post("/orders");
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        let answer = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(see(answer).await.problem(), problem);
    }
}

/// One layer twice around a handler does no harm.
#[tokio::test]
async fn the_same_layer_twice() {
    let layer = layer();
    let app = app(layer.clone(), || "done").layer(layer);
    let (statuses, heard) = twice(app, order).await;
    assert_eq!((statuses, heard), (vec![StatusCode::OK; 2], Vec::new()));
}

#[test]
fn a_preset_after_a_policy_replaces_nothing() {
    let (heard, _listening) = Heard::listen();
    let ours = Preset::new(|layer| layer.key(key::header("X-Id")).policy(Policy::at_most_once()));
    drop(IdempotencyLayer::new(MemoryStore::builder().clock(ManualClock::new()).build()).preset(ours));
    assert_eq!(heard.take(), [""; 0]);
}
