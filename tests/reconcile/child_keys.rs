//! A reconciler asks another service by the key that the run which never came back has shown it.

use std::{
    future::{pending, ready},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Body, http::Request, routing::post};
use http::StatusCode;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Operation, Reconciler, Secret,
    reconcile::{Abandoned, Resolution},
};

const LEASE: Duration = Duration::from_secs(30);

fn secret(byte: u8) -> Secret {
    Secret::new([byte; 32]).unwrap()
}

fn rotated() -> Secret {
    secret(2).accept([1; 32]).unwrap()
}

fn layer(store: &MemoryStore, secret: Option<Secret>) -> IdempotencyLayer {
    let layer = IdempotencyLayer::new(store.clone()).cancel_on_disconnect();
    match secret {
        Some(secret) => layer.secret(secret),
        None => layer,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Fails,
    Hangs,
}

/// One attempt at a payment; gives its child key.
async fn attempt(layer: IdempotencyLayer, caller: Option<&str>, end: End) -> String {
    let told = Arc::new(Mutex::new(String::new()));
    let tells = told.clone();
    let handler = post(async move |operation: Operation| {
        *tells.lock().unwrap() = operation.child_key("bank");
        if end == End::Hangs {
            pending::<()>().await;
        }
        StatusCode::INTERNAL_SERVER_ERROR
    });
    let mut request = Request::post("/payments").header("Idempotency-Key", "k");
    if let Some(caller) = caller {
        request = request.header("Authorization", caller);
    }
    let app = Router::new().route("/payments", handler).layer(layer);
    let answer = timeout(Duration::from_secs(1), app.oneshot(request.body(Body::empty()).unwrap())).await;
    assert_eq!(answer.is_err(), end == End::Hangs);
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 64);
    told
}

/// The child key by which a reconciler asks.
async fn asked(store: &MemoryStore, secret: Option<Secret>) -> Option<String> {
    sleep(LEASE).await;
    let told = Arc::new(Mutex::new(None));
    let tells = told.clone();
    let ask = move |abandoned: Abandoned| {
        *tells.lock().unwrap() = abandoned.child_key("bank");
        ready(Resolution::Leave)
    };
    let reconciler = Reconciler::new(store.clone(), ask).grace(Duration::ZERO);
    let reconciler = match secret {
        Some(secret) => reconciler.secret(secret),
        None => reconciler,
    };
    assert_eq!(reconciler.run_once().await.unwrap().left, 1);
    told.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn it_is_the_same_before_and_after_a_secret_is_set_or_replaced() {
    for (before, after) in
        [(None, None), (None, Some(secret(1))), (Some(secret(1)), Some(secret(1))), (Some(secret(1)), Some(rotated()))]
    {
        let store = MemoryStore::new();
        let key = attempt(layer(&store, before), Some("ann"), End::Hangs).await;
        assert_eq!(asked(&store, after).await, Some(key));
    }
}

#[tokio::test(start_paused = true)]
async fn there_is_none_without_the_secret() {
    for at_hand in [None, Some(secret(2))] {
        let store = MemoryStore::new();
        attempt(layer(&store, Some(secret(1))), Some("ann"), End::Hangs).await;
        assert_eq!(asked(&store, at_hand).await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_that_of_the_first_attempt_whoever_made_the_last() {
    for (before, after) in [(None, None), (Some(secret(1)), Some(rotated()))] {
        let store = MemoryStore::new();
        let first = attempt(layer(&store, before), None, End::Fails).await;
        let second = attempt(layer(&store, after.clone()), Some("ann"), End::Hangs).await;
        assert_eq!(second, first);
        assert_eq!(asked(&store, after).await, Some(first));
    }
}
