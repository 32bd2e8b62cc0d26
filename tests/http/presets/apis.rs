//! Conventions for APIs of one's own.

use std::time::Duration;

use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Operation, key,
    preset::{self, Preset},
    store::{StoreErrorKind, StoreVerb},
    testing::FaultyStore,
};

use crate::common::{Counter, Seen, see};

#[tokio::test(start_paused = true)]
async fn apis_of_ones_own() {
    let request = |key: &str, body: &str| {
        Request::post("/").header("Idempotency-Key", key).body(Body::from(body.to_owned())).unwrap()
    };
    for (preset, first, same, bare) in [(preset::ietf_draft as fn() -> Preset, "\"abc\"", "\"abc\";v=1", Some("abc"))] {
        let runs = Counter::default();
        let handler = {
            let runs = runs.clone();
            move || async move { (StatusCode::INTERNAL_SERVER_ERROR, runs.next().to_string()) }
        };
        let layer = IdempotencyLayer::new(MemoryStore::new()).preset(preset());
        let app: Router = Router::new().route("/", post(handler).layer(layer));
        let ask = async |key, body| see(app.clone().oneshot(request(key, body)).await.unwrap()).await;
        assert_eq!(ask(first, "").await, Seen::first(500, "1"));
        assert_eq!(ask(same, "").await, Seen::replay(500, "1"));
        assert_eq!(ask(same, "x").await.problem(), "key-reused");
        if let Some(bare) = bare {
            assert_eq!(ask(bare, "").await.problem(), "key-invalid");
        }
        assert_eq!(runs.get(), 1);
    }
}

/// An API that keeps Stripe's convention, whose handler does what the path says.
fn stripe(runs: &Counter) -> Router {
    let runs = runs.clone();
    let handler = move |operation: Operation, request: Request| async move {
        let run = runs.next().to_string();
        match request.uri().path() {
            "/panic" => panic!("told to"),
            "/ran" => operation.keep(),
            _ => {}
        }
        let status = request.headers().get("x-status").map_or("200", |status| status.to_str().unwrap());
        (status.parse::<u16>().map(|status| StatusCode::from_u16(status).unwrap()).unwrap(), run)
    };
    let layer = IdempotencyLayer::new(MemoryStore::new()).preset(preset::stripe_api());
    ["/", "/ran", "/panic"]
        .into_iter()
        .fold(Router::new(), |app, path| app.route(path, post(handler.clone())))
        .layer(layer)
}

async fn ask(app: &Router, path: &str, key: Option<&str>, status: u16, body: &str) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::post(path).header("x-status", status.to_string());
    if let Some(key) = key {
        request = request.header("Idempotency-Key", key);
    }
    let answer = app.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let (head, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, head.headers, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn stripe_keeps_what_ran() {
    for (status, kept) in [
        (200, true),
        (302, true),
        (402, true),
        (409, true),
        (410, true),
        (500, true),
        (503, true),
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (405, false),
        (413, false),
        (415, false),
        (422, false),
        (429, false),
    ] {
        let runs = Counter::default();
        let app = stripe(&runs);
        for _ in 0..2 {
            assert_eq!(ask(&app, "/", Some("k"), status, "").await.0, status);
        }
        assert_eq!(runs.get(), if kept { 1 } else { 2 }, "{status}");
        // A handler that ran says so.
        for _ in 0..2 {
            assert_eq!(ask(&app, "/ran", Some("r"), status, "").await.0, status);
        }
        assert_eq!(runs.get(), if kept { 2 } else { 3 }, "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_sdk_of_stripe_is_told_whether_to_repeat() {
    let runs = Counter::default();
    let app = stripe(&runs);
    let first = ask(&app, "/", Some("k"), 500, "").await;
    assert_eq!(first.1["stripe-should-retry"], "false", "it is kept, so that a repeat is useless");
    let again = ask(&app, "/", Some("k"), 500, "").await;
    assert_eq!((again.0.as_u16(), &again.1["stripe-should-retry"]), (500, &"false".parse().unwrap()));
    assert_eq!(again.1["idempotent-replayed"], "true");
    ask(&app, "/", Some("fine"), 200, "").await;
    let replay = ask(&app, "/", Some("fine"), 200, "").await;
    assert_eq!(replay.1.get("stripe-should-retry"), None);
    let released = ask(&app, "/", Some("released"), 429, "").await;
    assert_eq!(released.1.get("stripe-should-retry"), None, "it is not kept, and the SDK decides by the status");
    assert_eq!(runs.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn refusals_have_the_shape_that_sdks_of_stripe_read() {
    let app = stripe(&Counter::default());
    ask(&app, "/", Some("k"), 200, "one").await;
    for (key, body, status, kind, code) in [
        (Some("k"), "two", 400, "idempotency_error", "key_reused"),
        (None, "", 400, "invalid_request_error", "key_missing"),
        (Some("a,b"), "", 400, "invalid_request_error", "key_invalid"),
    ] {
        let (found, headers, body) = ask(&app, "/", key, 200, body).await;
        let error: Value = serde_json::from_str(&body).unwrap();
        let error = &error["error"];
        assert_eq!((found.as_u16(), &error["type"], &error["code"]), (status, &kind.into(), &code.into()));
        let message = error["message"].as_str().unwrap();
        assert_eq!(
            message.ends_with(" It belongs in the header `Idempotency-Key`."),
            code != "key_reused",
            "{message}"
        );
        assert_eq!(
            (&headers["content-type"], &headers["stripe-should-retry"]),
            (&"application/json".parse().unwrap(), &"false".parse().unwrap())
        );
    }
}

/// What an SDK of Stripe's reads of a refusal: status, type, code, whether to repeat it, and when.
fn told((status, headers, body): &(StatusCode, HeaderMap, String)) -> String {
    let error: Value = serde_json::from_str(body).unwrap();
    let [kind, code] = ["type", "code"].map(|member| error["error"][member].as_str().unwrap_or("-").to_owned());
    let field = |name: &str| headers.get(name).map_or("-", |value| value.to_str().unwrap()).to_owned();
    let (repeat, after) = (field("stripe-should-retry"), field("retry-after"));
    format!("{} {kind} {code}, repeat: {repeat}, after: {after}", status.as_u16())
}

#[tokio::test(start_paused = true)]
async fn refusals_that_sdks_of_stripe_repeat_and_those_that_they_do_not() {
    let store = FaultyStore::new(MemoryStore::new());
    let handler = |request: Request| async move {
        if let Some(seconds) = request.headers().get("x-takes") {
            tokio::time::sleep(Duration::from_secs(seconds.to_str().unwrap().parse().unwrap())).await;
        }
        "an answer of many bytes"
    };
    let layer = IdempotencyLayer::new(store.clone()).preset(preset::stripe_api());
    let layer = layer.request_limit(64).response_limit(8).retry_after(Duration::from_secs(5));
    let app: Router = Router::new().route("/", post(handler).layer(layer));
    let send = async |key: &str, caller: &str, takes: Option<&str>, body: String| {
        let request = Request::post("/").header("Idempotency-Key", key).header("Authorization", caller);
        let request = takes.into_iter().fold(request, |request, takes| request.header("X-Takes", takes));
        let (head, body) = app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap().into_parts();
        (head.status, head.headers, String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap())
    };
    let again = async || told(&send("k", "Bearer ann", None, String::new()).await);
    let (_, running) = tokio::join!(send("k", "Bearer ann", Some("60"), String::new()), async {
        tokio::task::yield_now().await;
        again().await
    });
    assert_eq!(running, "409 idempotency_error idempotency_key_in_use, repeat: true, after: 5");
    assert_eq!(again().await, "409 idempotency_error response_not_retained, repeat: false, after: -");
    assert_eq!(
        told(&send("k", "Bearer bob", None, String::new()).await),
        "400 idempotency_error other_caller, repeat: false, after: -"
    );
    assert_eq!(
        told(&send("l", "Bearer ann", None, "long".repeat(20)).await),
        "413 invalid_request_error body_too_large, repeat: false, after: -"
    );
    store.faults().on(StoreVerb::Claim).fail(StoreErrorKind::Unavailable);
    assert_eq!(again().await, "503 api_error store_unavailable, repeat: true, after: 5");
}

#[tokio::test]
async fn a_panic_is_kept_for_sdks_of_stripe() {
    let runs = Counter::default();
    let app = stripe(&runs);
    let panicked = app.clone();
    tokio::spawn(async move { ask(&panicked, "/panic", Some("k"), 200, "").await }).await.unwrap_err();
    let (status, headers, body) = ask(&app, "/panic", Some("k"), 200, "").await;
    let error: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status.as_u16(), &error["error"]["type"]), (500, &"api_error".into()));
    assert_eq!(headers["stripe-should-retry"], "false");
    assert_eq!(runs.get(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_preset_serves_several_layers() {
    let preset = Preset::new(|layer| layer.key(key::header("X-Request-Id")));
    for _ in 0..2 {
        let layer = IdempotencyLayer::new(MemoryStore::new()).preset(preset.clone());
        let app: Router = Router::new().route("/", post(|| async { "done" })).layer(layer);
        let ask = || Request::post("/").header("X-Request-Id", "k").body(Body::empty()).unwrap();
        assert_eq!(see(app.clone().oneshot(ask()).await.unwrap()).await, Seen::first(200, "done"));
        assert_eq!(see(app.oneshot(ask()).await.unwrap()).await, Seen::replay(200, "done"));
    }
}
