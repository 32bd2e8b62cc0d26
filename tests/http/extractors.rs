//! Scopes that an Axum extractor reads: authentication as most applications have it.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use axum::{
    Extension, Json, Router,
    body::Body,
    extract::{FromRef, FromRequestParts, State},
    http::{Request, StatusCode, request::Parts},
    middleware::from_extractor_with_state,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tower::{Layer, ServiceExt};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation, Tokens, fingerprint, key, scope};

use crate::common::{Counter, Seen, see};

/// Which session is whose. Counts how often it was asked.
#[derive(Clone, Default)]
struct Sessions {
    users: Arc<Mutex<HashMap<&'static str, &'static str>>>,
    asked: Counter,
}

impl Sessions {
    fn with_ann_and_bob() -> Self {
        let sessions = Self::default();
        sessions.users.lock().unwrap().extend([("a1", "ann"), ("a2", "ann"), ("b1", "bob")]);
        sessions
    }

    fn revoke(&self, session: &str) {
        self.users.lock().unwrap().remove(session);
    }
}

#[derive(Clone, Debug)]
struct User(String);

/// A rejection in the application's own format.
struct NotSignedIn;

impl IntoResponse for NotSignedIn {
    fn into_response(self) -> Response {
        (StatusCode::UNAUTHORIZED, Json(serde_json::json!({ "error": "sign in first" }))).into_response()
    }
}

impl<S: Sync> FromRequestParts<S> for User
where
    Sessions: FromRef<S>,
{
    type Rejection = NotSignedIn;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, NotSignedIn> {
        let sessions = Sessions::from_ref(state);
        sessions.asked.next();
        // As one that asks a database.
        tokio::task::yield_now().await;
        let session = parts.headers.get("x-session").and_then(|value| value.to_str().ok()).ok_or(NotSignedIn)?;
        let user = sessions.users.lock().unwrap().get(session).copied().ok_or(NotSignedIn)?;
        Ok(Self(user.to_owned()))
    }
}

fn layer(sessions: &Sessions) -> IdempotencyLayer {
    let scope = scope::from_extractor_with_state::<User, _, _>(sessions.clone(), |user| user.0.clone());
    IdempotencyLayer::new(MemoryStore::new()).scope(scope)
}

fn by(session: &str) -> Request<Body> {
    let request = Request::post("/orders").header("Idempotency-Key", "k").header("X-Session", session);
    request.body(Body::from("content")).unwrap()
}

async fn ask(app: &Router, request: Request<Body>) -> Seen {
    see(app.clone().oneshot(request).await.unwrap()).await
}

async fn order(Extension(user): Extension<User>, operation: Operation, body: String) -> String {
    format!("{} ({}): {body}", user.0, operation.scope().unwrap_or_default())
}

#[tokio::test]
async fn the_extractor_says_whose_key_it_is_and_its_value_is_there_for_the_handler() {
    let sessions = Sessions::with_ann_and_bob();
    let app = Router::new().route("/orders", post(order).layer(layer(&sessions)));
    assert_eq!(ask(&app, by("a1")).await, Seen::first(200, "ann (ann): content"));
    assert_eq!(sessions.asked.get(), 1, "it runs once a request");
    // Another session of hers; and Bob's key of the same text is another one.
    assert_eq!(ask(&app, by("a2")).await, Seen::replay(200, "ann (ann): content"));
    assert_eq!(ask(&app, by("b1")).await, Seen::first(200, "bob (bob): content"));
}

#[tokio::test]
async fn its_rejection_is_the_answer_and_nothing_is_claimed_or_replayed() {
    let sessions = Sessions::with_ann_and_bob();
    let runs = Counter::default();
    let counted = runs.clone();
    let handler = post(move || async move { counted.next().to_string() });
    let app = Router::new().route("/orders", handler.layer(layer(&sessions)));
    let rejected = Seen::first(401, r#"{"error":"sign in first"}"#);
    assert_eq!(ask(&app, by("unknown")).await, rejected);
    assert_eq!(ask(&app, by("a1")).await, Seen::first(200, "1"));
    sessions.revoke("a1");
    assert_eq!(ask(&app, by("a1")).await, rejected, "a revoked session is replayed nothing");
    assert_eq!(ask(&app, by("a2")).await, Seen::replay(200, "1"));
    assert_eq!(runs.get(), 1);
}

#[tokio::test]
async fn wherever_the_key_is() {
    let sessions = Sessions::with_ann_and_bob();
    let layers = [
        layer(&sessions).key(key::content()),
        layer(&sessions).key(key::query("id")).fingerprint(fingerprint::off()).stream_body(),
        #[cfg(feature = "json")]
        layer(&sessions).key(key::json("/id")),
    ];
    for layer in layers {
        let app = Router::new().route("/orders", post(order).layer(layer));
        let request = |session| {
            Request::post("/orders?id=7").header("X-Session", session).body(Body::from(r#"{"id":7}"#)).unwrap()
        };
        assert_eq!(ask(&app, request("a1")).await, Seen::first(200, r#"ann (ann): {"id":7}"#));
        assert_eq!(ask(&app, request("a2")).await, Seen::replay(200, r#"ann (ann): {"id":7}"#));
        assert_eq!(ask(&app, request("b1")).await, Seen::first(200, r#"bob (bob): {"id":7}"#));
        assert_eq!(ask(&app, request("x")).await.status, 401);
    }
}

#[tokio::test]
async fn a_request_that_is_not_protected_does_not_come_to_it() {
    let sessions = Sessions::with_ann_and_bob();
    let routes = get(|| async { "open" }).post(|| async { "open" });
    let app = Router::new().route("/orders", routes.layer(layer(&sessions).key_optional()));
    for method in ["GET", "POST"] {
        let request = Request::builder().method(method).uri("/orders").body(Body::empty()).unwrap();
        assert_eq!(ask(&app, request).await, Seen::first(200, "open"));
    }
    assert_eq!(sessions.asked.get(), 0);
}

#[tokio::test]
async fn an_empty_scope_is_missing_unless_it_may_be() {
    let scope = || scope::from_extractor::<axum::http::Method, _>(|_| "");
    let app = |scope| {
        let layer = IdempotencyLayer::new(MemoryStore::new()).scope(scope);
        Router::new().route("/orders", post(|| async { "ordered" }).layer(layer))
    };
    assert_eq!(ask(&app(scope()), by("a1")).await.problem(), "scope-missing");
    assert_eq!(ask(&app(scope().optional()), by("a1")).await, Seen::first(200, "ordered"));
}

/// The recipe of `docs/layers.md`: Axum's own middleware, outside, for an extractor that leaves its value behind.
#[tokio::test]
async fn the_extractor_as_a_layer_of_axums_outside() {
    #[derive(Clone)]
    struct Remembered(String);

    impl FromRequestParts<Sessions> for Remembered {
        type Rejection = NotSignedIn;

        async fn from_request_parts(parts: &mut Parts, state: &Sessions) -> Result<Self, NotSignedIn> {
            let User(name) = User::from_request_parts(parts, state).await?;
            parts.extensions.insert(Self(name.clone()));
            Ok(Self(name))
        }
    }

    let sessions = Sessions::with_ann_and_bob();
    let idempotent =
        IdempotencyLayer::new(MemoryStore::new()).scope(scope::extension(|user: &Remembered| user.0.clone()));
    let authenticated = from_extractor_with_state::<Remembered, _>(sessions.clone());
    let handler = |State(_): State<Sessions>, Extension(user): Extension<Remembered>| async move { user.0 };
    let app =
        Router::new().route("/orders", post(handler).layer((authenticated, idempotent))).with_state(sessions.clone());
    assert_eq!(ask(&app, by("a1")).await, Seen::first(200, "ann"));
    assert_eq!(ask(&app, by("a2")).await, Seen::replay(200, "ann"));
    sessions.revoke("a1");
    assert_eq!(ask(&app, by("a1")).await.status, 401);
}

#[test]
fn a_token_layer_refuses_it_when_it_is_built() {
    let scope = scope::from_extractor_with_state::<User, _, _>(Sessions::default(), |user| user.0.clone());
    let layer = Tokens::new(MemoryStore::new()).layer("checkout").principal(scope);
    let service = Router::<()>::new();
    let built = std::panic::catch_unwind(AssertUnwindSafe(|| drop(layer.layer(service))));
    let text = *built.expect_err("it is refused").downcast::<&str>().expect("a text");
    assert!(text.contains("take `scope::extension`"), "{text}");
}
