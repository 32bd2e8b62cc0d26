//! The cases of the guide "Operating it", as an operator meets them: what the metrics show, what cures it, and that it is cured.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body, http::Request, routing::post};
use bytes::Bytes;
use http_body_util::BodyExt;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Policy, Reconciler, SqliteStore, fingerprint,
    metrics::Metrics,
    reconcile::{Payload, Resolution},
    sql::outbox::{Message, Relay, StagedMessage},
    store::{Filter, RecordKey, StoreAdmin, StoreErrorKind, StoreVerb},
    testing::FaultyStore,
};

use super::scraped::Scraped;

const ROUTE: (&str, &str) = ("route", "/orders");

/// Sends an order, and returns the status, and the answer or the name of the refusal.
async fn send(app: &Router, key: &str, body: &str) -> (u16, String) {
    let request = Request::post("/orders").header("idempotency-key", key).header("content-type", "application/json");
    let answer = app.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let text = String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let refusal = serde_json::from_str::<serde_json::Value>(&text).ok();
    let name =
        refusal.and_then(|refusal| refusal["type"].as_str().map(|kind| kind.rsplit('#').next().unwrap().to_owned()));
    (status, name.unwrap_or(text))
}

/// Places an order, or has its answer replayed.
async fn place(app: &Router, key: &str, body: &str) {
    assert_eq!(send(app, key, body).await, (200, "placed".to_owned()));
}

fn app(layer: IdempotencyLayer, metrics: &Arc<Metrics>) -> Router {
    Router::new().route("/orders", post(async || "placed").layer(layer.observer(metrics.clone())))
}

/// Asserts how often something was counted.
macro_rules! assert_counted {
    ($scraped:expr, $name:literal, $labels:expr, $count:literal) => {
        let sum = $scraped.sum($name, $labels);
        assert!((sum - f64::from($count)).abs() < f64::EPSILON, "{sum}:\n{}", $scraped.page());
    };
}

#[tokio::test(start_paused = true)]
async fn the_store_is_down() {
    let (scraped, metrics) = (Scraped::new(), Arc::new(Metrics::new()));
    let store = FaultyStore::new(MemoryStore::new());
    let app = app(IdempotencyLayer::new(store.clone()), &metrics);
    store.faults().on_all().fail(StoreErrorKind::Unavailable);
    assert_eq!(send(&app, "a", "{}").await, (503, "store-unavailable".into()));
    assert_counted!(scraped, "idempotency_store_errors_total", &[ROUTE, ("verb", "claim")], 1);
    assert_counted!(scraped, "idempotency_refusals_total", &[ROUTE, ("reason", "store-unavailable")], 1);
    // Once the store is back, the same key runs: nothing has to be cleaned up.
    store.faults().heal();
    place(&app, "a", "{}").await;
    assert_eq!(store.stats().await.unwrap().abandoned, 0);
}

#[tokio::test(start_paused = true)]
async fn the_store_is_full() {
    let (scraped, metrics) = (Scraped::new(), Arc::new(Metrics::new()));
    let store = MemoryStore::builder().capacity(2).share_per_scope(2).build();
    let short = |retention| IdempotencyLayer::new(store.clone()).retention(retention);
    let full = app(short(Duration::from_secs(86_400)), &metrics);
    for key in ["a", "b"] {
        place(&full, key, "{}").await;
    }
    assert_eq!(send(&full, "c", "{}").await.0, 503);
    assert_counted!(scraped, "idempotency_refusals_total", &[ROUTE, ("reason", "store-full")], 1);
    // The records that have expired give room; with a shorter retention they do so sooner.
    sleep(Duration::from_secs(86_400)).await;
    let cured = app(short(Duration::from_secs(60)), &metrics);
    for key in ["c", "d", "e"] {
        place(&cured, key, "{}").await;
        sleep(Duration::from_secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_operation_is_abandoned_after_a_crash() {
    let (scraped, metrics) = (Scraped::new(), Arc::new(Metrics::new()));
    let store = MemoryStore::new();
    let layer = IdempotencyLayer::new(store.clone()).policy(Policy::at_most_once()).cancel_on_disconnect();
    let dies = Arc::new(AtomicBool::new(true));
    let handler = async move || {
        if dies.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        "placed"
    };
    let app = Router::new().route("/orders", post(handler).layer(layer.observer(metrics.clone())));
    assert!(timeout(Duration::from_secs(1), send(&app, "a", "{}")).await.is_err());
    sleep(Duration::from_secs(60)).await;
    metrics.set_stats(&store.stats().await.unwrap());
    assert_counted!(scraped, "idempotency_abandoned_records", &[], 1);
    assert_eq!(send(&app, "a", "{}").await, (409, "outcome-unknown".into()));
    // The operator looks it up, finds out at the other side that it was done, and a reconciler records that.
    let found = store.list(Filter::Abandoned, None, 10).await.unwrap().entries.remove(0);
    assert_eq!(found.key.key(), "a");
    let done = Payload::response(&axum::http::Response::new(Bytes::from_static(b"placed")));
    let reconciler = Reconciler::new(store.clone(), move |_| std::future::ready(Resolution::Settle(done.clone())))
        .grace(Duration::ZERO)
        .observer(metrics.clone());
    reconciler.run_once().await.unwrap();
    assert_counted!(scraped, "idempotency_reconciled_total", &[("result", "settled")], 1);
    assert_counted!(scraped, "idempotency_abandoned_records", &[], 0);
    place(&app, "a", "{}").await;
}

#[tokio::test]
async fn a_handler_blocks_its_thread_past_its_lease() {
    let (scraped, metrics) = (Scraped::new(), Arc::new(Metrics::new()));
    let layer =
        || IdempotencyLayer::new(MemoryStore::new()).lease(Duration::from_millis(100)).observer(metrics.clone());
    let work = || std::thread::sleep(Duration::from_millis(150));
    let blocking = async move || {
        work();
        "placed"
    };
    let app = Router::new().route("/orders", post(blocking).layer(layer()));
    place(&app, "a", "{}").await;
    assert_counted!(scraped, "idempotency_stalls_total", &[ROUTE], 1);
    let elsewhere = async move || {
        tokio::task::spawn_blocking(work).await.unwrap();
        "placed"
    };
    let cured = Router::new().route("/orders", post(elsewhere).layer(layer()));
    place(&cured, "b", "{}").await;
    assert_counted!(scraped, "idempotency_stalls_total", &[ROUTE], 1);
}

#[tokio::test]
async fn a_client_draws_a_new_key_for_every_try() {
    let (scraped, metrics) = (Scraped::new(), Arc::new(Metrics::new()));
    let app = app(IdempotencyLayer::new(MemoryStore::new()), &metrics);
    for key in ["try-1", "try-2", "try-3"] {
        place(&app, key, r#"{"apples":2}"#).await;
    }
    assert_counted!(scraped, "idempotency_requests_total", &[ROUTE, ("outcome", "settled")], 3);
    assert_counted!(scraped, "idempotency_requests_total", &[ROUTE, ("outcome", "replayed")], 0);
    // The client draws its key once, before the first try.
    for _ in 0..3 {
        place(&app, "order-7", r#"{"apples":2}"#).await;
    }
    assert_counted!(scraped, "idempotency_requests_total", &[ROUTE, ("outcome", "settled")], 4);
    assert_counted!(scraped, "idempotency_requests_total", &[ROUTE, ("outcome", "replayed")], 2);
}

#[tokio::test]
async fn a_webhook_is_delivered_again_with_another_content() {
    let (scraped, metrics) = (Scraped::new(), Arc::new(Metrics::new()));
    let delivery = |attempt| format!(r#"{{"event":"paid","delivery_attempt":{attempt}}}"#);
    let by_bytes = app(IdempotencyLayer::new(MemoryStore::new()), &metrics);
    place(&by_bytes, "evt-1", &delivery(1)).await;
    assert_eq!(send(&by_bytes, "evt-1", &delivery(2)).await, (422, "key-reused".into()));
    assert_counted!(scraped, "idempotency_refusals_total", &[ROUTE, ("reason", "key-reused")], 1);
    // What differs between two deliveries is left out of the comparison.
    let compared = fingerprint::json().without_fields(["/delivery_attempt"]);
    let cured = app(IdempotencyLayer::new(MemoryStore::new()).fingerprint(compared), &metrics);
    for attempt in 1..3 {
        place(&cured, "evt-1", &delivery(attempt)).await;
    }
    assert_counted!(scraped, "idempotency_requests_total", &[ROUTE, ("outcome", "replayed")], 1);
}

#[tokio::test]
async fn a_message_holds_up_the_outbox() {
    let (scraped, metrics) = (Scraped::new(), Arc::new(Metrics::new()));
    let folder = std::env::temp_dir().join(format!("observability-outbox-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let url = format!("sqlite:{}?mode=rwc", folder.join("orders.db").display());
    let store = SqliteStore::builder().observer(metrics.clone()).connect(&url).await.unwrap();
    let outbox = store.outbox();
    outbox.migrate().await.unwrap();
    let mut transaction = store.pool().begin().await.unwrap();
    for payload in ["malformed", "second"] {
        outbox.stage(&mut transaction, &Message::new("order.placed", payload).key("order-7")).await.unwrap();
    }
    transaction.commit().await.unwrap();
    let relay = Relay::new(outbox.clone(), async |outgoing: StagedMessage| {
        if &*outgoing.message.payload == b"malformed" { Err("the broker does not take it") } else { Ok(()) }
    });
    relay.run(Duration::from_millis(10), sleep(Duration::from_millis(200))).await;
    let topic = ("topic", "order.placed");
    assert_counted!(scraped, "idempotency_outbox_messages_total", &[topic, ("outcome", "sent")], 0);
    assert!(scraped.sum("idempotency_outbox_messages_total", &[topic, ("outcome", "retried")]) >= 1.0);
    // The gauge was set when the relay began, behind its first look.
    assert_counted!(scraped, "idempotency_outbox_unsent_messages", &[], 2);
    // The operator looks at the oldest message, and discards it; the next one with its key goes on.
    let stuck = outbox.unsent(Duration::ZERO, 1).await.unwrap().remove(0);
    assert!(stuck.attempt >= 1 && outbox.discard(&stuck.message.id).await.unwrap());
    relay.run(Duration::from_millis(10), sleep(Duration::from_millis(200))).await;
    assert_counted!(scraped, "idempotency_outbox_messages_total", &[topic, ("outcome", "sent")], 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

/// A failover forgets the last writes: here, the claim of a request that runs.
#[tokio::test(start_paused = true)]
async fn a_failover_forgets_a_claim() {
    let (scraped, metrics) = (Scraped::new(), Arc::new(Metrics::new()));
    let store = FaultyStore::new(MemoryStore::new());
    let handler = async || {
        sleep(Duration::from_secs(20)).await;
        "placed"
    };
    let layer = IdempotencyLayer::new(store.clone()).observer(metrics.clone());
    let app = Router::new().route("/orders", post(handler).layer(layer));
    let (first, ()) = tokio::join!(send(&app, "a", "{}"), async {
        sleep(Duration::from_secs(1)).await;
        store.faults().on(StoreVerb::Renew).once().fail(StoreErrorKind::Unavailable);
        store.forget(&RecordKey::new("/orders", None, "a").unwrap()).await.unwrap();
    });
    assert_counted!(scraped, "idempotency_store_errors_total", &[ROUTE, ("verb", "renew")], 1);
    assert_counted!(scraped, "idempotency_claims_lost_total", &[ROUTE], 1);
    // The first request has run, and nothing is recorded of it: its client receives a 409, and its retry runs.
    assert_eq!(first.0, 409, "{first:?}");
    place(&app, "a", "{}").await;
    assert_counted!(scraped, "idempotency_requests_total", &[ROUTE, ("outcome", "settled")], 1);
    assert_eq!(store.stats().await.unwrap().abandoned, 0);
}
