//! Tokens for pages: issued inside a handler, and by a route of their own.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode},
    response::{Html, IntoResponse, Response},
    routing::{get, post},
};
use tower::ServiceExt;
use tower_idempotency::{
    Event, MemoryStore, Tokens, scope,
    store::{StoreErrorKind, StoreVerb},
    testing::FaultyStore,
    token::{IssueError, TokenIssuer},
};

use crate::common::{Seen, see};

async fn page(tokens: TokenIssuer) -> Result<Response, IssueError> {
    let token = tokens.issue().await?;
    Ok(([("Cache-Control", "max-age=60")], Html(token.as_str().to_owned())).into_response())
}

async fn ask(app: &Router, method: &str, path: &str, user: Option<&str>, token: Option<&str>) -> (Seen, HeaderMap) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in [("X-User", user), ("X-Submit-Token", token)] {
        if let Some(value) = value {
            request = request.header(name, value);
        }
    }
    let response = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let headers = response.headers().clone();
    (see(response).await, headers)
}

#[tokio::test]
async fn a_page_and_its_form_on_one_route() {
    let tokens = Tokens::new(MemoryStore::new());
    let checkout = tokens.layer("checkout").principal(scope::header("X-User").optional());
    let app = Router::new()
        .route("/checkout", get(page).post(|| async { (StatusCode::CREATED, "ordered") }).layer(checkout.clone()))
        .route("/plain", get(|_: TokenIssuer| async { "no token here" }).layer(checkout));
    for user in [Some("ann"), None] {
        let (seen, headers) = ask(&app, "GET", "/checkout", user, None).await;
        assert_eq!(headers["cache-control"], "no-store");
        let token = Some(&*seen.body);
        assert_eq!(ask(&app, "POST", "/checkout", Some("bob"), token).await.0.problem(), "token-invalid");
        assert_eq!(ask(&app, "POST", "/checkout", user, token).await.0.status, 201);
        assert_eq!(ask(&app, "POST", "/checkout", user, token).await.0.problem(), "token-used");
    }
    // What has no token in it may be cached.
    assert!(!ask(&app, "GET", "/plain", None, None).await.1.contains_key("cache-control"));
}

#[tokio::test]
async fn a_route_that_issues() {
    let checkout = Tokens::new(MemoryStore::new()).lifetime(Duration::from_millis(1500)).layer("checkout");
    let app: Router = Router::new()
        .route("/token", checkout.clone().endpoint())
        .route("/checkout", post(|| async { StatusCode::CREATED }).layer(checkout));
    let (seen, headers) = ask(&app, "GET", "/token", None, None).await;
    assert_eq!(
        (&headers["content-type"], &headers["cache-control"]),
        (&"application/json".parse().unwrap(), &"no-store".parse().unwrap())
    );
    let json: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
    assert_eq!(json["expires_in"], 1.5);
    assert_eq!(ask(&app, "POST", "/checkout", None, json["token"].as_str()).await.0.status, 201);
    assert_eq!(ask(&app, "POST", "/token", None, None).await.0.problem(), "token-missing");
}

#[tokio::test]
async fn no_token_can_be_issued() {
    let store = FaultyStore::new(MemoryStore::new());
    let checkout = Tokens::new(store.clone()).layer("checkout").principal(scope::header("X-User"));
    let app: Router = Router::new().route("/token", checkout.endpoint());
    assert_eq!(ask(&app, "GET", "/token", None, None).await.0.problem(), "scope-missing");
    for (kind, status, problem) in [
        (StoreErrorKind::Full, 503, "store-full"),
        (StoreErrorKind::TooManyKeys, 429, "too-many-keys"),
        (StoreErrorKind::Unavailable, 503, "store-unavailable"),
    ] {
        store.faults().on(StoreVerb::Issue).once().fail(kind);
        let (seen, headers) = ask(&app, "GET", "/token", Some("ann"), None).await;
        assert_eq!((seen.status.as_u16(), &*seen.problem()), (status, problem));
        assert_eq!(
            (&headers["retry-after"], &headers["cache-control"]),
            (&"1".parse().unwrap(), &"no-store".parse().unwrap())
        );
    }
    let bare: Router = Router::new().route("/", get(page));
    assert_eq!(ask(&bare, "GET", "/", None, None).await.0.status, 500);
}

#[derive(Clone)]
struct User(&'static str);

/// The layers are in the wrong order, and no client can do anything about that.
#[tokio::test]
async fn the_principals_extension_is_missing() {
    let by_user = scope::extension(|user: &User| user.0);
    let checkout = Tokens::new(MemoryStore::new()).layer("checkout").principal(by_user);
    let app = Router::new()
        .route("/token", checkout.clone().endpoint())
        .route("/checkout", get(page).post(|| async { StatusCode::CREATED }).layer(checkout));
    let token = "x".repeat(43);
    for (method, path, token) in
        [("GET", "/token", None), ("GET", "/checkout", None), ("POST", "/checkout", Some(&*token))]
    {
        #[cfg(feature = "tracing")]
        let (heard, _listening) = crate::tracing_events::Heard::listen();
        let (seen, _) = ask(&app, method, path, None, token).await;
        assert_eq!((seen.status.as_u16(), &*seen.problem()), (500, "extension-missing"), "{method} {path}");
        assert!(!seen.body.contains("User"), "{}", seen.body);
        #[cfg(feature = "tracing")]
        {
            let said = heard.take();
            assert_eq!(said.len(), 1, "{said:?}");
            for word in ["ERROR", "pages::User", "outside this layer"] {
                assert!(said[0].contains(word), "{word}: {said:?}");
            }
        }
    }
    let right = app.layer(axum::Extension(User("ann")));
    let (seen, _) = ask(&right, "GET", "/checkout", None, None).await;
    assert_eq!(ask(&right, "POST", "/checkout", None, Some(&seen.body)).await.0.status, 201);
}

/// What the handler of a submission issues is for whom the spent one was for.
#[tokio::test]
async fn a_submission_can_issue_as_well() {
    let tokens = Tokens::new(Arc::new(MemoryStore::new()));
    let handler = |tokens: TokenIssuer| async move {
        let another = tokens.issue().await?;
        Ok::<_, IssueError>((StatusCode::CREATED, another.as_str().to_owned()))
    };
    let layer = tokens.layer("checkout").principal(scope::header("X-User"));
    let app = Router::new().route("/", post(handler).layer(layer));
    let mut token = tokens.issue("checkout", Some("ann")).await.unwrap().as_str().to_owned();
    for _ in 0..3 {
        assert_eq!(ask(&app, "POST", "/", Some("bob"), Some(&token)).await.0.problem(), "token-invalid");
        let (seen, headers) = ask(&app, "POST", "/", Some("ann"), Some(&token)).await;
        assert_eq!((seen.status.as_u16(), &headers["cache-control"]), (201, &"no-store".parse().unwrap()));
        token = seen.body;
    }
}

#[tokio::test]
async fn an_observer_receives_each_token_and_why_there_is_none() {
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let lines = seen.clone();
    let store = FaultyStore::new(MemoryStore::new());
    let tokens = Tokens::new(store.clone()).observer(move |event: &Event<'_>| {
        lines.lock().unwrap().push(match event {
            Event::TokenNotIssued { purpose, error, .. } => format!("{purpose}: {:?}", error.kind()),
            event => format!("{}: {}", event.route().unwrap_or_default(), event.name()),
        });
    });
    let app: Router = Router::new().route("/token", tokens.layer("checkout").endpoint());
    tokens.issue("mail", None).await.unwrap();
    assert_eq!(ask(&app, "GET", "/token", None, None).await.0.status, 200);
    store.faults().on(StoreVerb::Issue).once().fail(StoreErrorKind::Full);
    assert_eq!(ask(&app, "GET", "/token", None, None).await.0.problem(), "store-full");
    assert_eq!(ask(&app, "POST", "/token", None, None).await.0.problem(), "token-missing");
    let expected =
        ["mail: token-issued", "checkout: token-issued", "checkout: Full", "checkout: refused", "checkout: refused"];
    assert_eq!(*seen.lock().unwrap(), expected);
}

/// The error of the store is there for the application's log, and not in the response.
#[tokio::test]
async fn an_issue_that_failed_has_the_error_of_the_store() {
    async fn source(tokens: TokenIssuer) -> String {
        let error = tokens.issue().await.unwrap_err();
        let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
        let response = error.into_response();
        assert!(!String::from_utf8_lossy(response.body()).contains("scripted"), "{response:?}");
        source
    }
    let store = FaultyStore::new(MemoryStore::new());
    store.faults().on(StoreVerb::Issue).once().fail(StoreErrorKind::Unavailable);
    let app = Router::new().route("/", get(source).layer(Tokens::new(store).layer("checkout")));
    let (seen, _) = ask(&app, "GET", "/", None, None).await;
    assert!(seen.body.contains("a scripted fault"), "{}", seen.body);
}
