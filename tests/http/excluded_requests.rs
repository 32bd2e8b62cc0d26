//! Layers that are switched off, and routes and requests that a layer leaves out.

use axum::{
    Router,
    body::Body,
    http::{Request, StatusCode},
    routing::post,
};
use tower::{Layer, ServiceExt};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation, Policy, key};

use crate::common::{Counter, Seen, post as send, see};

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

async fn ask(app: &Router, path: &str) -> Seen {
    see(app.clone().oneshot(send(path, "k", "")).await.unwrap()).await
}

async fn protected(operation: Option<Operation>) -> String {
    operation.map_or("unprotected".into(), |operation| operation.record_key().route().to_owned())
}

#[tokio::test]
async fn a_layer_that_is_switched_off_protects_nothing_and_has_the_same_type() {
    let runs = Counter::default();
    let app = |disabled| {
        let runs = runs.clone();
        let idempotent = layer().disabled(disabled);
        Router::new().route("/run", post(move || async move { runs.next().to_string() })).layer(idempotent)
    };
    let off = app(true);
    assert_eq!(ask(&off, "/run").await, Seen::first(200, "1"));
    assert_eq!(ask(&off, "/run").await, Seen::first(200, "2"));
    let keyless = Request::post("/run").body(Body::empty()).unwrap();
    assert_eq!(off.oneshot(keyless).await.unwrap().status(), StatusCode::OK);

    let on = app(false);
    assert_eq!(ask(&on, "/run").await, Seen::first(200, "4"));
    assert_eq!(ask(&on, "/run").await, Seen::replay(200, "4"));
    // One type, whatever the configuration says.
    let mut service = layer().layer(Router::<()>::new());
    service = layer().disabled(true).layer(service.into_inner());
    drop(service);
}

#[tokio::test]
async fn routes_are_left_out_by_their_name() {
    let routes = || Router::new().route("/a", post(protected)).route("/b/{id}", post(protected));
    let app = Router::new()
        .merge(routes())
        .nest("/nested", routes())
        .layer(layer().skip_routes(["/b/{id}"]).skip_routes(["/nested/a"]));
    for (path, expected) in
        [("/a", "/a"), ("/b/7", "unprotected"), ("/nested/a", "unprotected"), ("/nested/b/7", "/nested/b/{id}")]
    {
        assert_eq!(ask(&app, path).await, Seen::first(200, expected), "{path}");
    }
}

#[tokio::test]
async fn without_a_router_the_path_is_the_name() {
    let app = layer().skip_routes(["/b"]).layer(Router::new().fallback(protected));
    for (path, expected) in [("/a", "/a"), ("/b", "unprotected")] {
        let answer = app.clone().oneshot(send(path, "k", "")).await.unwrap();
        assert_eq!(see(answer).await, Seen::first(200, expected));
    }
}

#[tokio::test]
async fn requests_are_left_out_by_a_condition_on_their_head() {
    let app = Router::new().route("/run", post(protected)).layer(
        layer().skip_if(|parts| parts.headers.contains_key("x-internal")).skip_if(|parts| parts.uri.query().is_some()),
    );
    assert_eq!(ask(&app, "/run").await, Seen::first(200, "/run"));
    assert_eq!(ask(&app, "/run?dry").await, Seen::first(200, "unprotected"));
    let mut internal = send("/run", "k", "");
    internal.headers_mut().insert("x-internal", "1".parse().unwrap());
    assert_eq!(see(app.oneshot(internal).await.unwrap()).await, Seen::first(200, "unprotected"));
}

/// The layer on the router is outside: it claims first, and the one on the route steps back.
#[tokio::test]
async fn the_outer_layer_wins_unless_it_leaves_the_route_out() {
    let inner = || layer().policy(Policy::reject());
    for (outer, expected) in [
        (layer(), Seen::replay(200, "/run")),
        (layer().skip_routes(["/run"]), Seen::first(409, "")),
        (layer().skip_if(|parts| parts.uri.path() == "/run"), Seen::first(409, "")),
    ] {
        let routers = [
            // On a method router, on a router, and on a nested one.
            Router::new().route("/run", post(protected).layer(inner())).layer(outer.clone()),
            Router::new().route("/run", post(protected)).layer(inner()).layer(outer.clone()),
            Router::new().route("/run", post(protected).route_layer(inner())).route_layer(outer.clone()),
        ];
        for app in routers {
            let app = Router::new().merge(app);
            let store_is_fresh = ask(&app, "/run").await;
            let again = ask(&app, "/run").await;
            assert_eq!(again.status, expected.status, "{store_is_fresh:?}, then {again:?}");
            assert_eq!(again.replayed, expected.replayed);
        }
    }
}

#[tokio::test]
async fn a_nested_routers_layer_is_inside_the_one_around_it() {
    let inner = Router::new().route("/run", post(protected)).layer(layer().key(key::header("X-Inner")));
    let app = |outer: IdempotencyLayer| Router::new().nest("/v1", inner.clone()).layer(outer);
    let keyless = || Request::post("/v1/run").header("X-Inner", "i").body(Body::empty()).unwrap();
    // The outer one asks for its own key first.
    let refused = app(layer()).oneshot(keyless()).await.unwrap();
    assert_eq!(see(refused).await.problem(), "key-missing");
    let passed = app(layer().skip_routes(["/v1/run"])).oneshot(keyless()).await.unwrap();
    assert_eq!(see(passed).await, Seen::first(200, "/v1/run"));
}
