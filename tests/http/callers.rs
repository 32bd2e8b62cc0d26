//! Whose key it is: scopes, and what stands in for one that is missing.

use axum::{
    Extension, Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode},
    routing::post,
};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Policy, Tokens, key,
    scope::{self, ScopeExtractor},
    store::{Filter, StoreAdmin},
};

use crate::common::{Counter, Seen, see};

/// A route whose answers are numbered.
fn app(layer: IdempotencyLayer) -> Router {
    let runs = Counter::default();
    Router::new()
        .route("/{tenant}/orders/{id}/pay", post(async move || (StatusCode::CREATED, runs.next().to_string())))
        .layer(layer)
}

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

async fn send(app: &Router, path: &str, headers: &[(&str, &str)], body: &'static str) -> Seen {
    let request = headers.iter().fold(Request::post(path), |request, (name, value)| request.header(*name, *value));
    see(app.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()).await
}

const PATH: &str = "/a/orders/7/pay";
const KEY: (&str, &str) = ("idempotency-key", "k");
const ANN: (&str, &str) = ("authorization", "Bearer ann");
const BOB: (&str, &str) = ("authorization", "Bearer bob");

fn run(number: u32) -> Seen {
    Seen::first(201, &number.to_string())
}

fn replay(number: u32) -> Seen {
    Seen::replay(201, &number.to_string())
}

#[tokio::test]
async fn without_its_optional_scope_a_request_is_its_callers() {
    let optional: [ScopeExtractor; 3] = [
        scope::header("X-Tenant").optional(),
        scope::from_key(key::query("tenant")).optional(),
        by_extractor().optional(),
    ];
    for scope in optional {
        let app = app(layer().scope(scope));
        assert_eq!(send(&app, PATH, &[KEY, ANN], "").await, run(1));
        assert_eq!(send(&app, PATH, &[KEY, BOB], "").await.status, 422);
        assert_eq!(send(&app, PATH, &[KEY, ANN], "").await, replay(1));
    }
    // With the scope, the credentials do not count.
    for scope in [scope::header("X-Tenant"), by_extractor()] {
        let app = app(layer().scope(scope.optional()));
        assert_eq!(send(&app, PATH, &[KEY, ANN, ("x-tenant", "t")], "").await, run(1));
        assert_eq!(send(&app, PATH, &[KEY, BOB, ("x-tenant", "t")], "").await, replay(1));
        assert_eq!(send(&app, PATH, &[KEY, BOB], "").await, run(2));
    }
}

/// The tenant, as an extractor of Axum's finds it.
fn by_extractor() -> ScopeExtractor {
    let tenant = |headers: &HeaderMap| headers.get("x-tenant").map_or("", |tenant| tenant.to_str().unwrap()).to_owned();
    scope::from_extractor::<HeaderMap, _>(tenant)
}

#[cfg(feature = "json")]
#[tokio::test]
async fn a_scope_in_the_body_falls_back_too() {
    let app = app(layer().scope(scope::from_key(key::json("/merchant")).optional()));
    assert_eq!(send(&app, PATH, &[KEY, ANN], "{}").await, run(1));
    assert_eq!(send(&app, PATH, &[KEY, BOB], "{}").await.status, 422);
    assert_eq!(send(&app, PATH, &[KEY, BOB], r#"{"merchant":"m"}"#).await, run(2));
}

#[tokio::test]
async fn content_without_its_optional_scope_is_its_callers() {
    for scope in [scope::header("X-Tenant"), by_extractor()] {
        let app = app(layer().key(key::content()).scope(scope.optional()));
        assert_eq!(send(&app, PATH, &[ANN], "same").await, run(1));
        assert_eq!(send(&app, PATH, &[BOB], "same").await, run(2));
        assert_eq!(send(&app, PATH, &[], "same").await, run(3));
        assert_eq!(send(&app, PATH, &[("x-tenant", "t")], "same").await, run(4));
        assert_eq!(send(&app, PATH, &[ANN, ("cookie", "_ga=1")], "same").await, replay(1));
        assert_eq!(send(&app, PATH, &[BOB], "same").await, replay(2));
        assert_eq!(send(&app, PATH, &[], "same").await, replay(3));
        assert_eq!(send(&app, PATH, &[ANN, ("x-tenant", "t")], "same").await, replay(4));
    }
}

#[cfg(feature = "json")]
#[tokio::test]
async fn content_without_its_optional_scope_in_the_body_is_its_callers() {
    let merchant = scope::from_key(key::json("/merchant")).optional();
    let app = app(layer().key(key::content()).scope(merchant));
    assert_eq!(send(&app, PATH, &[ANN], "{}").await, run(1));
    assert_eq!(send(&app, PATH, &[BOB], "{}").await, run(2));
    assert_eq!(send(&app, PATH, &[], "{}").await, run(3));
    assert_eq!(send(&app, PATH, &[ANN], r#"{"merchant":"m"}"#).await, run(4));
    assert_eq!(send(&app, PATH, &[ANN], "{}").await, replay(1));
    assert_eq!(send(&app, PATH, &[BOB], "{}").await, replay(2));
    assert_eq!(send(&app, PATH, &[], "{}").await, replay(3));
    assert_eq!(send(&app, PATH, &[BOB], r#"{"merchant":"m"}"#).await, replay(4));
}

/// A layer that lets requests without a key through finds one in each: none is left unprotected.
#[tokio::test]
async fn content_is_there_where_a_key_is_optional() {
    for key in [key::content(), key::first([key::header("Idempotency-Key"), key::content()])] {
        let app = app(layer().key(key).key_optional().unscoped());
        assert_eq!(send(&app, PATH, &[], "one").await, run(1));
        assert_eq!(send(&app, PATH, &[], "one").await, replay(1));
        assert_eq!(send(&app, PATH, &[], "two").await, run(2));
    }
}

#[tokio::test]
async fn content_of_a_session() {
    let app = app(layer().key(key::content()).scope(scope::cookie("sid")).policy(Policy::reject()));
    assert_eq!(send(&app, PATH, &[("cookie", "sid=ann; _ga=1")], "same").await, run(1));
    assert_eq!(send(&app, PATH, &[("cookie", "theme=dark; sid=ann")], "same").await.problem(), "duplicate-request");
    assert_eq!(send(&app, PATH, &[("cookie", "sid=bob")], "same").await, run(2));
    assert_eq!(send(&app, PATH, &[], "same").await.problem(), "scope-missing");
}

#[tokio::test]
async fn content_stands_in_for_a_key_that_is_missing() {
    let app = app(layer().key(key::first([key::header("Idempotency-Key"), key::content()])).unscoped());
    assert_eq!(send(&app, PATH, &[KEY], "one").await, run(1));
    assert_eq!(send(&app, PATH, &[KEY], "one").await, replay(1));
    assert_eq!(send(&app, PATH, &[KEY], "two").await.status, 422);
    assert_eq!(send(&app, PATH, &[], "one").await, run(2));
    assert_eq!(send(&app, PATH, &[], "one").await, replay(2));
    assert_eq!(send(&app, PATH, &[], "two").await, run(3));
}

#[test]
fn whose_content_it_is_has_to_be_said() {
    let put = |layer: IdempotencyLayer| {
        let around = move || drop(layer.layer(service_fn(async |(): ()| Ok::<_, ()>(()))));
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(around))
    };
    for key in [key::content(), key::first([key::header("x-a"), key::content()])] {
        let panic = put(layer().key(key.clone())).unwrap_err();
        let message = panic.downcast::<String>().unwrap();
        for call in ["key::content()", "`.scope(..)`", "`.credentials(..)`", "`.unscoped()`"] {
            assert!(message.contains(call), "{call}: {message}");
        }
        for said in [
            layer().key(key.clone()).unscoped(),
            layer().key(key.clone()).scope(scope::host().optional()),
            layer().key(key).credentials([http::header::AUTHORIZATION]),
        ] {
            assert!(put(said).is_ok());
        }
    }
}

#[tokio::test]
async fn an_order_of_another_tenant_is_another_operation() {
    let by = |key| app(layer().key(key).unscoped());
    let one = by(key::path("id"));
    assert_eq!(send(&one, "/a/orders/7/pay", &[], "").await, run(1));
    // The path is part of the content, so at least it is not replayed.
    assert_eq!(send(&one, "/b/orders/7/pay", &[], "").await.problem(), "key-reused");
    let both = by(key::path(["tenant", "id"]));
    assert_eq!(send(&both, "/a/orders/7/pay", &[], "").await, run(1));
    assert_eq!(send(&both, "/b/orders/7/pay", &[], "").await, run(2));
    assert_eq!(send(&both, "/b/orders/7/pay", &[], "").await, replay(2));
    assert_eq!(send(&by(key::path(["tenant", "none"])), "/a/orders/7/pay", &[], "").await.problem(), "key-missing");
}

#[cfg(all(feature = "form", feature = "json"))]
#[tokio::test]
async fn tenants_by_a_header_in_the_fingerprint() {
    use tower_idempotency::fingerprint;

    let tenant = http::HeaderName::from_static("x-tenant");
    for (fingerprint, content_type, body) in [
        (fingerprint::bytes(), "text/plain", "content"),
        #[cfg(feature = "json")]
        (fingerprint::json(), "application/json", r#"{"id":7}"#),
        #[cfg(feature = "form")]
        (fingerprint::form(), "application/x-www-form-urlencoded", "id=7"),
    ] {
        let app = app(layer().fingerprint(fingerprint.with_headers([tenant.clone()])).unscoped());
        let by = async |tenant: &'static str| {
            send(&app, PATH, &[KEY, ("content-type", content_type), ("x-tenant", tenant)], body).await
        };
        assert_eq!(by("a").await, run(1));
        assert_eq!(by("b").await.problem(), "key-reused", "{content_type}");
        assert_eq!(by("a").await, replay(1));
    }
}

#[cfg(all(feature = "form", feature = "json"))]
#[tokio::test]
async fn a_coding_makes_another_request() {
    use tower_idempotency::fingerprint;

    for (fingerprint, content_type, body) in [
        (fingerprint::bytes(), "text/plain", "x"),
        (fingerprint::json(), "application/json", r#"{"amount":1}"#),
        (fingerprint::json_only(["/amount"]), "application/json", r#"{"amount":1}"#),
        (fingerprint::form(), "application/x-www-form-urlencoded", "amount=1"),
    ] {
        let app = app(layer().unscoped().fingerprint(fingerprint));
        let kind = ("content-type", content_type);
        assert_eq!(send(&app, PATH, &[KEY, kind], body).await, run(1));
        let coded = send(&app, PATH, &[KEY, kind, ("content-encoding", "gzip")], body).await;
        assert_eq!(coded.problem(), "key-reused", "{content_type}");
        assert_eq!(send(&app, PATH, &[KEY, kind, ("content-encoding", "identity")], body).await, replay(1));
    }
}

#[tokio::test]
async fn credentials_are_not_in_the_store() {
    let store = MemoryStore::new();
    for scope in [
        scope::cookie("sid"),
        scope::header("Authorization"),
        scope::header("X-Api-Key"),
        scope::from_key(key::header("Authorization")),
        scope::from_key(key::first([key::header("X-Api-Key"), key::query("api-key")])),
    ] {
        let app = app(IdempotencyLayer::new(store.clone()).scope(scope));
        let headers = [KEY, ("authorization", "hunter2"), ("x-api-key", "hunter2"), ("cookie", "sid=hunter2")];
        assert_eq!(send(&app, PATH, &headers, "").await.status, 201);
    }
    // All of them are digests of the same value, and so one scope.
    let records = store.list(Filter::All, None, 9).await.unwrap().entries;
    assert_eq!(records.len(), 1);
    let scope = records[0].key.scope().unwrap().to_owned();
    assert!(scope.starts_with("sha256:") && scope.len() == 71, "{scope}");
}

#[derive(Clone)]
struct User(&'static str);

#[tokio::test]
async fn a_layer_outside_the_authentication_is_at_fault() {
    let by_user = || scope::extension(|user: &User| user.0);
    // The wrong order: the authentication is inside.
    let wrong = Router::new()
        .route(PATH, post(async || StatusCode::CREATED))
        .layer(Extension(User("ann")))
        .layer(layer().scope(by_user()));
    #[cfg(feature = "tracing")]
    let (heard, _guard) = crate::tracing_events::Heard::listen();
    let refused = send(&wrong, PATH, &[KEY], "").await;
    assert_eq!((refused.status.as_u16(), &*refused.problem()), (500, "extension-missing"));
    assert!(!refused.body.contains("User"), "{}", refused.body);
    #[cfg(feature = "tracing")]
    {
        let said = heard.take();
        assert_eq!(said.len(), 1, "{said:?}");
        for word in ["ERROR", "callers::User", ".layer(idempotency).layer(authentication)", "`.optional()`"] {
            assert!(said[0].contains(word), "{word}: {said:?}");
        }
    }
    let right = Router::new()
        .route(PATH, post(async || StatusCode::CREATED))
        .layer(layer().scope(by_user()))
        .layer(Extension(User("ann")));
    assert_eq!(send(&right, PATH, &[KEY], "").await.status, 201);
    // For handlers that serve both, the credentials tell those apart that nobody has authenticated.
    let both = Router::new().route(PATH, post(async || StatusCode::CREATED)).layer(layer().scope(by_user().optional()));
    assert_eq!(send(&both, PATH, &[KEY, ANN], "").await.status, 201);
    assert_eq!(send(&both, PATH, &[KEY, BOB], "").await.status, 422);
}

#[tokio::test]
async fn principals_of_tokens_are_not_in_the_store() {
    let store = MemoryStore::new();
    let layer = Tokens::new(store.clone()).layer("order").principal(scope::header("X-User"));
    let app = Router::new()
        .route("/token", layer.clone().endpoint())
        .route("/orders", post(async || StatusCode::CREATED).layer(layer));
    let page = Request::get("/token").header("X-User", "ann@example.com").body(Body::empty()).unwrap();
    let page = see(app.clone().oneshot(page).await.unwrap()).await;
    let shown = format!("{:?}", store.list(Filter::All, None, 9).await.unwrap());
    assert!(shown.contains("sha256:") && !shown.contains("ann@example.com"), "{shown}");
    let page: serde_json::Value = serde_json::from_str(&page.body).unwrap();
    for (user, expected) in [("bob@example.com", 403), ("ann@example.com", 201), ("ann@example.com", 409)] {
        let headers = [("x-user", user), ("x-submit-token", page["token"].as_str().unwrap())];
        assert_eq!(send(&app, "/orders", &headers, "").await.status, expected, "{user}");
    }
}
