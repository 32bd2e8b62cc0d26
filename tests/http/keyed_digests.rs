//! What a secret keys on each layer, and what stays a name.

use std::convert::Infallible;

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    routing::post,
};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    ConsumerLayer, IdempotencyLayer, MemoryStore, Secret, Tokens,
    fingerprint::Fingerprint,
    key, scope,
    store::{Entry, Filter, State, StoreAdmin},
};

use crate::common::see;

fn secret(byte: u8) -> Secret {
    Secret::new([byte; 32]).unwrap()
}

async fn records(store: &MemoryStore) -> Vec<Entry> {
    store.list(Filter::All, None, 99).await.unwrap().entries
}

async fn only(store: &MemoryStore) -> Entry {
    let mut records = records(store).await;
    assert_eq!(records.len(), 1);
    records.remove(0)
}

async fn status<L>(layer: L, headers: &[(&str, &str)], body: &'static str) -> u16
where
    L: Layer<axum::routing::Route> + Clone + Send + Sync + 'static,
    L::Service: tower::Service<Request<Body>, Error = Infallible> + Clone + Send + Sync + 'static,
    <L::Service as tower::Service<Request<Body>>>::Response: axum::response::IntoResponse,
    <L::Service as tower::Service<Request<Body>>>::Future: Send,
{
    let app = Router::new().route("/orders", post(async || StatusCode::CREATED)).layer(layer);
    let request = headers.iter().fold(Request::post("/orders"), |request, (name, value)| request.header(*name, *value));
    app.oneshot(request.body(Body::from(body)).unwrap()).await.unwrap().status().as_u16()
}

const SENT: &[(&str, &str)] = &[("idempotency-key", "k"), ("authorization", "Basic YW5uOng=")];

#[tokio::test]
async fn callers_and_fingerprints_are_keyed_and_names_are_not() {
    let (plain, keyed) = (MemoryStore::new(), MemoryStore::new());
    assert_eq!(status(IdempotencyLayer::new(plain.clone()), SENT, "4711").await, 201);
    assert_eq!(status(IdempotencyLayer::new(keyed.clone()).secret(secret(1)), SENT, "4711").await, 201);
    let (plain, keyed) = (only(&plain).await, only(&keyed).await);
    assert_eq!(plain.key, keyed.key);
    assert_ne!(plain.record.caller, keyed.record.caller);
    assert_ne!(plain.record.fingerprint, keyed.record.fingerprint);
    assert_eq!(keyed.record.secret, secret(1).number());
}

#[tokio::test]
async fn a_secret_is_replaced_without_a_second_run() {
    let store = MemoryStore::new();
    for layer in [
        // Content as the key, whose name must not change with the secret.
        IdempotencyLayer::new(store.clone()).key(key::content()).scope(scope::cookie("sid").optional()),
        IdempotencyLayer::new(store.clone()),
        IdempotencyLayer::new(store.clone()).scope(scope::header("Authorization")),
    ] {
        let before = records(&store).await.len();
        assert_eq!(status(layer.clone().secret(secret(1)), SENT, "4711").await, 201);
        let rotated = secret(2).accept([1; 32]).unwrap();
        assert_eq!(status(layer.clone().secret(rotated), SENT, "4711").await, 201);
        // Without the former one, nobody can tell whose the record is.
        assert_eq!(status(layer.secret(secret(2)), SENT, "4711").await, 409);
        assert_eq!(records(&store).await.len(), before + 1);
    }
}

#[tokio::test]
async fn principals_of_tokens_are_digests() {
    let store = MemoryStore::new();
    let tokens = Tokens::new(store.clone());
    let layer = tokens.layer("order").principal(scope::header("X-User")).secret(secret(1));
    let app = Router::new()
        .route("/token", layer.clone().endpoint())
        .route("/orders", post(async || StatusCode::CREATED).layer(layer));
    let page = Request::get("/token").header("X-User", "ann@example.com").body(Body::empty()).unwrap();
    let page = app.clone().oneshot(page).await.unwrap();
    let shown = format!("{:?}", only(&store).await);
    assert!(shown.contains("sha256:") && !shown.contains("ann@example.com"), "{shown}");
    let page = axum::body::to_bytes(page.into_body(), 9999).await.unwrap();
    let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
    for (user, expected) in [("bob@example.com", 403), ("ann@example.com", 201), ("ann@example.com", 409)] {
        let order = Request::post("/orders").header("X-User", user);
        let order = order.header("X-Submit-Token", page["token"].as_str().unwrap()).body(Body::empty()).unwrap();
        assert_eq!(app.clone().oneshot(order).await.unwrap().status(), expected, "{user}");
    }
    // Bob was given a token of his own.
    let spent = records(&store).await.into_iter().find(|entry| entry.record.state == State::Settled);
    assert_eq!(spent.unwrap().record.secret, secret(1).number());
}

/// It is as good as it was once the secret is there again.
#[tokio::test]
async fn a_token_whose_secret_is_not_at_hand_is_refused_and_not_spent() {
    let store = MemoryStore::new();
    let tokens = Tokens::new(store.clone());
    let token = tokens.issue("order", Some("ann")).await.unwrap();
    let submit = async |secret: Secret, body: &'static str| {
        let layer = tokens.layer("order").principal(scope::header("X-User")).secret(secret);
        let answer = |body: String| async move {
            body.parse().map_or(StatusCode::CREATED, |n| StatusCode::from_u16(n).unwrap())
        };
        let app = Router::new().route("/orders", post(answer).layer(layer));
        let order = Request::post("/orders").header("X-User", "ann").header("X-Submit-Token", token.as_str());
        see(app.oneshot(order.body(Body::from(body)).unwrap()).await.unwrap()).await
    };
    let rotated = || secret(2).accept([1; 32]).unwrap();
    assert_eq!(submit(secret(1), "422").await.status, 422);
    for _ in 0..2 {
        let refused = submit(secret(2), "tea").await;
        assert_eq!((refused.status.as_u16(), &*refused.problem()), (409, "record-incompatible"));
    }
    assert_eq!(submit(rotated(), "tea").await.status, 201);
    assert_eq!(submit(rotated(), "tea").await.problem(), "token-used");
    assert_eq!(submit(secret(1), "tea").await.problem(), "record-incompatible");
}

#[tokio::test]
async fn messages_are_keyed() {
    let store = MemoryStore::new();
    let layer = |secret| {
        ConsumerLayer::new(store.clone(), "payouts", |_: &&str| "order-7".to_owned())
            .fingerprint(|message: &&str| Fingerprint::builder().part(message).build())
            .secret(secret)
    };
    let handle = |layer: ConsumerLayer<&'static str>| {
        let service = layer.layer(service_fn(async |_: &str| Ok::<_, Infallible>("paid")));
        async move { format!("{:?}", service.oneshot("100").await) }
    };
    assert_eq!(handle(layer(secret(1))).await, "Ok(Executed(\"paid\"))");
    assert_eq!(only(&store).await.record.secret, secret(1).number());
    assert_eq!(handle(layer(secret(2).accept([1; 32]).unwrap())).await, "Ok(AlreadyDone)");
    // Neither handled once more nor put aside: it comes again when the secret is there.
    assert_eq!(handle(layer(secret(2))).await, "Ok(Unavailable { retry_after: 1s })");
}

#[cfg(feature = "json")]
#[tokio::test]
async fn functions_are_keyed() {
    use tower_idempotency::{Once, Refusal, run::RunError};

    let store = MemoryStore::new();
    let once = |secret| {
        let asked = Fingerprint::builder().part("100").build();
        Once::new(store.clone(), "payouts").fingerprint(asked).secret(secret)
    };
    let run = async |once: Once| once.run("order-7", async |_| Ok::<_, String>(1)).await;
    assert!(matches!(run(once(secret(1))).await, Ok(1)));
    assert_eq!(only(&store).await.record.secret, secret(1).number());
    assert!(matches!(run(once(secret(2).accept([1; 32]).unwrap())).await, Ok(1)));
    let incompatible = RunError::Refused(Refusal::RecordIncompatible);
    assert_eq!(run(once(secret(2))).await, Err(incompatible));
}
