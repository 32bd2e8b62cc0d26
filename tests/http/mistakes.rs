//! The lines of `docs/mistakes.md` about how a service is set up: one warning for each route and mistake, with the remedy.
//! What goes wrong while it runs is in `mistakes_at_run_time.rs`.

use std::time::Duration;

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
    IdempotencyLayer, Keep, MemoryStore, OnDuplicate, Operation, Policy, TokenLayer, Tokens, key, preset::Preset,
    scope, testing::ManualClock,
};

use crate::{
    common::{Counter, frames::Frames, post as send, see},
    tracing_events::Heard,
};

pub(crate) fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new()).unscoped()
}

/// Sends the same request twice; returns the statuses, and what was logged.
pub(crate) async fn twice(app: Router, request: impl Fn() -> Request<Body>) -> (Vec<StatusCode>, Vec<String>) {
    let (heard, _listening) = Heard::listen();
    let mut statuses = Vec::new();
    for _ in 0..2 {
        statuses.push(app.clone().oneshot(request()).await.unwrap().status());
    }
    (statuses, heard.take())
}

pub(crate) fn assert_one(heard: &[String], route: &str, remedy: &str) {
    assert_eq!(heard.len(), 1, "{heard:#?}");
    assert!(heard[0].starts_with("WARN") && heard[0].contains(remedy), "{heard:#?}");
    assert!(
        heard[0].contains(&format!("route={route:?}")) || heard[0].contains(&format!("route={route}")),
        "{heard:#?}"
    );
}

pub(crate) fn order() -> Request<Body> {
    send("/orders", "k", "")
}

pub(crate) fn app<R: IntoResponse + Send + 'static>(
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
    let (_, heard) = twice(app(layer().keep(Keep::EVERYTHING), || StatusCode::GATEWAY_TIMEOUT), order).await;
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

    // On purpose, and if nobody asks for it.
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

#[test]
#[should_panic(expected = "a retention of 0ns")]
fn a_retention_of_nothing() {
    drop(layer().retention(Duration::ZERO));
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

/// A 401 from inside says that a used token is all that a replay asks for.
#[tokio::test]
async fn authentication_inside_the_layer_of_tokens() {
    let tokens = Tokens::new(MemoryStore::new());
    let app = |layer: TokenLayer| Router::new().route("/orders", post(async || StatusCode::UNAUTHORIZED)).layer(layer);
    let token = tokens.issue("order", None).await.unwrap();
    let ask = || Request::post("/orders").header("X-Submit-Token", token.as_str()).body(Body::empty()).unwrap();
    let replays = || tokens.layer("order").on_duplicate(OnDuplicate::Replay);
    let (statuses, heard) = twice(app(replays()), ask).await;
    assert_eq!(statuses, [401, 401]);
    assert_one(&heard, "order", "bind the tokens with `.principal(..)`");
    for silent in [tokens.layer("order"), replays().principal(scope::header("X-User").optional())] {
        assert_eq!(twice(app(silent), ask).await.1, [""; 0]);
    }
}

/// What nobody can see runs a second time, and without a word: the guide has to tell of it.
#[tokio::test]
async fn what_nobody_can_see_is_in_the_guide() {
    let guide = include_str!("../../docs/mistakes.md");
    let (unseen, _) = guide.split_once("# What is reported").unwrap();
    let runs = Counter::default();
    let handler = |runs: &Counter| {
        let runs = runs.clone();
        post(async move || runs.next().to_string())
    };
    let key = |key| send("/orders", key, "");

    assert!(unseen.contains("**A key that is drawn anew for every try.**"));
    let anew = Router::new().route("/orders", handler(&runs)).layer(layer());
    assert_eq!(silently([(&anew, key("k1")), (&anew, key("k2"))]).await, ["1", "2"]);

    assert!(unseen.contains("**`MemoryStore` in two processes.**"));
    let process = |runs: &Counter| Router::new().route("/orders", handler(runs)).layer(layer());
    assert_eq!(silently([(&process(&runs), order()), (&process(&runs), order())]).await, ["3", "4"]);

    assert!(unseen.contains("**`.layer(..)` before `.route(..)`.**"));
    let before = Router::new().route("/other", get(async || ())).layer(layer()).route("/orders", handler(&runs));
    assert_eq!(silently([(&before, order()), (&before, order())]).await, ["5", "6"]);

    assert!(unseen.contains("**A `GET` that writes.**"));
    let writes = runs.clone();
    let reads = Router::new().route("/orders", get(async move || writes.next().to_string())).layer(layer());
    let get = || Request::get("/orders").header("Idempotency-Key", "k").body(Body::empty()).unwrap();
    assert_eq!(silently([(&reads, get()), (&reads, get())]).await, ["7", "8"]);
}

/// Returns the answers to these requests, and asserts that nothing is logged.
async fn silently<const N: usize>(requests: [(&Router, Request<Body>); N]) -> [String; N] {
    let (heard, _listening) = Heard::listen();
    let mut answers = [const { String::new() }; N];
    for (answer, (app, request)) in answers.iter_mut().zip(requests) {
        *answer = see(app.clone().oneshot(request).await.unwrap()).await.body;
    }
    assert_eq!(heard.take(), [""; 0]);
    answers
}

#[tokio::test(start_paused = true)]
async fn a_server_of_grpc() {
    let unavailable = || async { Frames::of(["\0\0\0\0\0"]).trailers(&[("grpc-status", "14")]).boxed() };
    let app = Router::new().route("/bank.Transfers/Create", post(unavailable)).layer(layer());
    let (statuses, heard) = twice(app, || send("/bank.Transfers/Create", "k", "")).await;
    assert_eq!(statuses, [200, 200]);
    assert_one(&heard, "/bank.Transfers/Create", "tower-idempotency-grpc");
}
