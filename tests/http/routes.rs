//! The route's name, as Axum's routers give it.

use crate::common::{Seen, post as send, see};
use axum::{Router, routing::post};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation, key};

async fn route(operation: Operation) -> String {
    operation.record_key().route().to_owned()
}

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

async fn ask(app: &Router, path: &str, key: &str) -> Seen {
    see(app.clone().oneshot(send(path, key, "")).await.unwrap()).await
}

async fn assert_runs(app: &Router, path: &str, expected: &str) {
    assert_eq!(ask(app, path, "k").await, Seen::first(200, expected), "{path}");
    assert_eq!(ask(app, path, "k").await, Seen::replay(200, expected), "{path}");
}

#[tokio::test]
async fn one_layer_in_nested_routers_makes_two_operations() {
    let bare = || Router::new().route("/run", post(route));
    let (one, two, three) = (layer(), layer(), layer());
    for app in [
        Router::new().nest("/pay", bare().layer(one.clone())).nest("/refund", bare().layer(one)),
        Router::new().nest_service("/pay", bare().layer(two.clone())).nest_service("/refund", bare().layer(two)),
        Router::new().nest("/pay", bare()).nest("/refund", bare()).layer(three),
    ] {
        assert_runs(&app, "/pay/run", "/pay/run").await;
        assert_runs(&app, "/refund/run", "/refund/run").await;
    }
}

#[tokio::test]
async fn deeply_nested() {
    let inner = Router::new().route("/{id}/run", post(route)).layer(layer());
    let app = Router::new().nest("/{tenant}", Router::new().nest_service("/v1", inner));
    assert_runs(&app, "/ann/v1/7/run", "/{tenant}/v1/{id}/run").await;
}

#[tokio::test]
async fn other_parameters_are_another_request_of_the_same_route() {
    let app = Router::new().route("/orders/{id}/pay", post(route).layer(layer()));
    assert_runs(&app, "/orders/1/pay", "/orders/{id}/pay").await;
    assert_eq!(ask(&app, "/orders/2/pay", "k").await.problem(), "key-reused");
}

#[tokio::test]
async fn fallbacks_and_services_go_by_the_whole_path() {
    let shared = layer();
    let service = || {
        let inner = service_fn(|request: axum::extract::Request| async move {
            let operation: &Operation = request.extensions().get().unwrap();
            Ok::<_, std::convert::Infallible>(axum::response::Response::new(operation.record_key().route().to_owned()))
        });
        let inner = tower::ServiceBuilder::new()
            .map_request(|request: axum::http::Request<tower_idempotency::service::RequestBody<axum::body::Body>>| {
                request.map(axum::body::Body::new)
            })
            .service(inner);
        shared.layer(inner)
    };
    let app = Router::new().nest_service("/pay", service()).nest_service("/refund", service());
    assert_runs(&app, "/pay/run", "/pay/run").await;
    assert_runs(&app, "/refund/run", "/refund/run").await;

    let fallback = || Router::new().fallback(route);
    let shared = layer();
    let app = Router::new()
        .nest("/a", fallback().layer(shared.clone()))
        .nest("/b", fallback().layer(shared.clone()))
        .fallback_service(fallback().layer(shared));
    for path in ["/a/x", "/b/x", "/x", "/a", "/b/x/y"] {
        assert_runs(&app, path, path).await;
    }
}

#[tokio::test]
async fn a_fixed_name() {
    let fixed = layer().route("orders");
    let app = Router::new()
        .route("/v1/orders", post(route).layer(fixed.clone()))
        .route("/v2/orders", post(route).layer(fixed));
    assert_runs(&app, "/v1/orders", "orders").await;
    // One operation, asked for in another way.
    assert_eq!(ask(&app, "/v2/orders", "k").await.problem(), "key-reused");
}

#[tokio::test]
async fn a_router_without_the_matched_path_goes_by_the_path() {
    let app = layer().layer(Router::new().route("/orders/{id}", post(route)));
    let answer = app.oneshot(send("/orders/7", "k", "")).await.unwrap();
    assert_eq!(see(answer).await, Seen::first(200, "/orders/7"));
}

#[tokio::test]
async fn keys_from_the_path() {
    async fn key(operation: Operation) -> String {
        operation.key().to_owned()
    }
    let by_id = layer().key(key::path("id"));
    let app = Router::new()
        .route("/orders/{id}/pay", post(key).layer(by_id.clone()))
        .nest("/t/{id}", Router::new().route("/pay", post(key).layer(by_id.clone())))
        .route("/none", post(key).layer(by_id));
    assert_runs(&app, "/orders/a%2Fb%20c/pay", "a/b c").await;
    assert_runs(&app, "/t/7/pay", "7").await;
    assert_eq!(ask(&app, "/orders/%00/pay", "k").await.problem(), "key-invalid");
    assert_eq!(ask(&app, "/orders/%ff/pay", "k").await.problem(), "key-invalid");
    assert_eq!(ask(&app, "/none", "k").await.problem(), "key-missing");
}

#[tokio::test]
async fn an_extractor_without_its_layer() {
    let app = Router::new()
        .route("/bare", post(route))
        .route("/either", post(|operation: Option<Operation>| async move { operation.is_none().to_string() }));
    assert_eq!(ask(&app, "/bare", "k").await.status, 500);
    assert_eq!(ask(&app, "/either", "k").await, Seen::first(200, "true"));
}

#[tokio::test]
async fn the_same_layer_twice_steps_back() {
    let shared = layer();
    let app = Router::new().route("/run", post(route).layer(shared.clone())).layer(shared);
    assert_runs(&app, "/run", "/run").await;
}

#[tokio::test]
async fn two_layers_that_name_it_differently_both_protect() {
    let outer = layer().route("outer");
    let app = Router::new().route("/run", post(route).layer(layer().route("inner"))).layer(outer);
    assert_runs(&app, "/run", "inner").await;
}

/// As services of gRPC do, which look at the path themselves.
#[tokio::test]
async fn by_the_path_behind_a_wildcard() {
    let nested = |layer: IdempotencyLayer| {
        Router::new().nest("/v1", Router::new().route("/rpc/{*method}", post(route).layer(layer)))
    };
    let app = nested(layer().route_by_path());
    assert_runs(&app, "/v1/rpc/pay", "/v1/rpc/pay").await;
    assert_runs(&app, "/v1/rpc/refund", "/v1/rpc/refund").await;
    let app = nested(layer());
    assert_runs(&app, "/v1/rpc/pay", "/v1/rpc/{*method}").await;
    assert_eq!(ask(&app, "/v1/rpc/refund", "k").await.problem(), "key-reused");
}
