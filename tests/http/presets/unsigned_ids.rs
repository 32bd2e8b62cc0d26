//! Senders whose signature covers the body, and not the identifier in the head.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, Request},
    http::StatusCode,
    routing::post,
};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore,
    preset::{self, Preset},
};

use crate::common::{Counter, see};

struct Hook {
    app: Router,
    runs: Counter,
}

impl Hook {
    fn new(preset: Preset) -> Self {
        let runs = Counter::default();
        let counted = runs.clone();
        let handler = move |body: Bytes| async move {
            counted.next();
            body.len().to_string()
        };
        let layer = IdempotencyLayer::new(MemoryStore::new()).preset(preset);
        let app = Router::new().route("/hook", post(handler).layer(layer)).layer(DefaultBodyLimit::disable());
        Self { app, runs }
    }

    /// Delivers; says the status, or the problem's name, and how many ran so far.
    async fn deliver(&self, headers: &[(&str, &str)], body: &str) -> (String, usize) {
        let request =
            headers.iter().fold(Request::post("/hook"), |request, (name, value)| request.header(*name, *value));
        let answer = self.app.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
        let seen = see(answer).await;
        let told = if seen.status == StatusCode::OK { "200".to_owned() } else { seen.problem() };
        (told, self.runs.get())
    }
}

fn told(what: &str, runs: usize) -> (String, usize) {
    (what.to_owned(), runs)
}

#[tokio::test(start_paused = true)]
async fn another_body_under_a_used_identifier_is_refused() {
    for (preset, id) in [
        (preset::github_webhook as fn() -> Preset, "X-GitHub-Delivery"),
        (preset::shopify_webhook, "X-Shopify-Event-Id"),
        (preset::shopify_webhook, "Shopify-Webhook-Id"),
    ] {
        let hook = Hook::new(preset());
        assert_eq!(hook.deliver(&[(id, "1")], "one").await, told("200", 1));
        assert_eq!(hook.deliver(&[(id, "1")], "two").await, told("key-reused", 1), "no event is lost without a trace");
        assert_eq!(hook.deliver(&[(id, "1")], "one").await, told("200", 1), "the record is as it was");
        assert_eq!(hook.deliver(&[(id, "2")], "one").await, told("200", 2), "which is what is left");
    }
}

#[tokio::test(start_paused = true)]
async fn by_body_a_captured_body_does_not_run_under_a_new_identifier() {
    for (preset, names) in [
        (preset::github_webhook_by_body as fn() -> Preset, &["X-GitHub-Delivery", "X-GitHub-Hook-ID"][..]),
        (preset::shopify_webhook_by_body, &["X-Shopify-Event-Id", "X-Shopify-Webhook-Id", "X-Shopify-Topic"]),
    ] {
        let hook = Hook::new(preset());
        assert_eq!(hook.deliver(&[(names[0], "1")], "one").await, told("200", 1));
        for name in names {
            assert_eq!(hook.deliver(&[(name, "2")], "one").await, told("200", 1), "{name}");
        }
        assert_eq!(hook.deliver(&[], "one").await, told("200", 1));
        assert_eq!(hook.deliver(&[(names[0], "1")], "two").await, told("200", 2), "another event");
    }
}

#[tokio::test(start_paused = true)]
async fn two_webhooks_of_github_share_no_identifier() {
    let hook = Hook::new(preset::github_webhook());
    let id = ("X-GitHub-Delivery", "72d3162e");
    assert_eq!(hook.deliver(&[id, ("X-GitHub-Hook-ID", "1")], "one").await, told("200", 1));
    assert_eq!(hook.deliver(&[id, ("X-GitHub-Hook-ID", "2")], "two").await, told("200", 2));
    assert_eq!(hook.deliver(&[id, ("X-GitHub-Hook-ID", "1")], "one").await, told("200", 2));
}

#[tokio::test(start_paused = true)]
async fn one_event_of_shopify_for_two_topics_is_two_operations() {
    let hook = Hook::new(preset::shopify_webhook());
    let id = ("X-Shopify-Event-Id", "98880550-7158-44d4-b7cd-2c97c8a091b5");
    assert_eq!(hook.deliver(&[id, ("X-Shopify-Topic", "orders/create")], "one").await, told("200", 1));
    assert_eq!(hook.deliver(&[id, ("X-Shopify-Topic", "orders/paid")], "one").await, told("200", 2));
    assert_eq!(hook.deliver(&[id, ("X-Shopify-Topic", "orders/create")], "one").await, told("200", 2));
}

#[tokio::test(start_paused = true)]
async fn large_payloads_are_accepted() {
    const MIB: usize = 1024 * 1024;
    for (preset, id, limit) in [
        (preset::github_webhook as fn() -> Preset, "X-GitHub-Delivery", 25 * MIB),
        (preset::github_webhook_by_body, "X-GitHub-Delivery", 25 * MIB),
        (preset::shopify_webhook, "X-Shopify-Event-Id", 16 * MIB),
    ] {
        let hook = Hook::new(preset());
        assert_eq!(hook.deliver(&[(id, "1")], &"x".repeat(limit)).await, told("200", 1));
        assert_eq!(hook.deliver(&[(id, "2")], &"x".repeat(limit + 1)).await, told("body-too-large", 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_captured_body_runs_for_another_hook() {
    let hook = Hook::new(preset::github_webhook());
    let (id, other) = (("X-GitHub-Delivery", "1"), ("X-GitHub-Hook-ID", "2"));
    assert_eq!(hook.deliver(&[id, ("X-GitHub-Hook-ID", "1")], "one").await, told("200", 1));
    assert_eq!(hook.deliver(&[id, other], "one").await, told("200", 2), "which is left, too");
    assert_eq!(hook.deliver(&[id], "one").await, told("200", 3));
    assert_eq!(hook.deliver(&[id, other], "one").await, told("200", 3));
}

#[tokio::test(start_paused = true)]
async fn apps_that_share_an_event_have_routes_of_their_own() {
    let runs = Counter::default();
    let counted = runs.clone();
    let handler = move || std::future::ready(counted.next().to_string());
    let layer = IdempotencyLayer::new(MemoryStore::new()).preset(preset::shopify_webhook());
    let app = Router::new().route("/one", post(handler.clone())).route("/other", post(handler)).layer(layer);
    for (path, expected) in [("/one", 1), ("/other", 2), ("/one", 2), ("/other", 2)] {
        let request = Request::post(path).header("X-Shopify-Event-Id", "1").header("X-Shopify-Topic", "orders/create");
        let answer = app.clone().oneshot(request.body(Body::from("one")).unwrap()).await.unwrap();
        assert_eq!((answer.status(), runs.get()), (StatusCode::OK, expected), "{path}");
    }
}
