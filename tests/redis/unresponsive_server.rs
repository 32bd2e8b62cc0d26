//! A connection on which nothing is answered is left soon, whichever limits are set.

use std::time::Duration;

use axum::{Router, body::Body, http::Request, http::StatusCode, routing::post};
use tokio::time::{Instant, sleep};
use tower::ServiceExt;
use tower_idempotency::{IdempotencyLayer, RedisStore};

use crate::{proxy::Link, server::Server};

/// How soon a route is to be back.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// As many tests run beside one another, a second is not always a second.
pub(crate) const LENIENCY: Duration = Duration::from_millis(500);

pub(crate) fn app(store: &RedisStore, store_timeout: Duration, lease: Duration) -> Router {
    let layer = IdempotencyLayer::new(store.clone()).store_timeout(store_timeout).lease(lease);
    Router::new().route("/pay", post(async || "paid")).layer(layer)
}

pub(crate) async fn pay(app: &Router, key: &str) -> StatusCode {
    let request = Request::post("/pay").header("Idempotency-Key", key).body(Body::empty()).unwrap();
    app.clone().oneshot(request).await.unwrap().status()
}

/// How long it takes until a first request is served.
pub(crate) async fn served_after(app: &Router) -> Duration {
    let began = Instant::now();
    for n in 0.. {
        if pay(app, &format!("{n}")).await == StatusCode::OK {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "it does not come back");
        sleep(Duration::from_millis(20)).await;
    }
    began.elapsed()
}

/// A link that forgets its connections, as a firewall does that was started again.
#[tokio::test]
async fn connections_go_silent_and_new_ones_are_served() {
    let server = Server::start(&[]);
    let millis = Duration::from_millis;
    for (store_timeout, lease) in [(60, 30_000), (200, 30_000), (500, 300), (5_000, 1_500), (5_000, 30_000)] {
        let link = Link::to(server.port()).await;
        let store = RedisStore::builder().namespace(&format!("{store_timeout} {lease}")).connect(&link.url()).await;
        let app = app(&store.unwrap(), millis(store_timeout), millis(lease));
        assert_eq!(pay(&app, "warm").await, StatusCode::OK);
        link.go_silent();
        let back = served_after(&app).await;
        println!("store timeout {store_timeout} ms, lease {lease} ms: back after {back:?}");
        assert!(back < SOON + LENIENCY, "store timeout {store_timeout} ms, lease {lease} ms: after {back:?}");
    }
}

/// One who waits in patience is served by the connection that others made.
#[tokio::test]
async fn a_command_on_its_way_is_sent_again() {
    let server = Server::start(&[]);
    let link = Link::to(server.port()).await;
    let store = RedisStore::builder().command_timeout(Duration::from_secs(20)).connect(&link.url()).await.unwrap();
    let app = app(&store, Duration::from_secs(30), Duration::from_secs(60));
    assert_eq!(pay(&app, "warm").await, StatusCode::OK);
    link.go_silent();
    let began = Instant::now();
    assert_eq!(pay(&app, "one").await, StatusCode::OK);
    assert!(began.elapsed() < SOON + LENIENCY, "after {:?}", began.elapsed());
}

/// A server that stands still for a moment keeps its connections, and is not run from.
#[tokio::test]
async fn a_pause_of_the_server_costs_no_connection() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let app = app(&store, Duration::from_secs(5), Duration::from_secs(30));
    assert_eq!(pay(&app, "warm").await, StatusCode::OK);
    let clients = || server.tell("CLIENT LIST TYPE normal").lines().filter(|line| line.contains("id=")).count();
    let before = clients();
    server.pause();
    let paying = tokio::spawn({
        let app = app.clone();
        async move { pay(&app, "paused").await }
    });
    sleep(Duration::from_millis(700)).await;
    server.resume();
    assert_eq!(paying.await.unwrap(), StatusCode::OK);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(clients(), before);
}
