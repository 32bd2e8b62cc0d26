//! The layer in a router of Axum 0.7: see "Axum 0.7" in `docs/layers.md`.

use std::{sync::Arc, time::Duration};

use axum::{Extension, Router, body::Body, extract::Request, http::StatusCode, response::Response, routing::post};
use http_body_util::BodyExt;
use tower::{ServiceBuilder, ServiceExt};
use tower_http::{compression::CompressionLayer, cors::CorsLayer, timeout::TimeoutLayer, trace::TraceLayer};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation, cors};

async fn route(Extension(operation): Extension<Operation>) -> String {
    format!("{} of {}, attempt {}", operation.key(), operation.record_key().route(), operation.attempt())
}

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

async fn ask(app: &Router, path: &str) -> Response {
    let request = Request::post(path).header("Idempotency-Key", "k").body(Body::from("content")).unwrap();
    app.clone().oneshot(request).await.unwrap()
}

async fn text(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn a_retry_is_answered_and_the_handler_takes_the_operation_as_an_extension() {
    for app in [
        Router::new().route("/orders/:id", post(route)).layer(layer()),
        Router::new().route("/orders/:id", post(route).layer(layer())),
        Router::new().route("/orders/:id", post(route)).route_layer(layer()),
    ] {
        let first = ask(&app, "/orders/7").await;
        assert_eq!((first.status(), &*text(first).await), (StatusCode::OK, "k of /orders/7, attempt 1"));
        let again = ask(&app, "/orders/7").await;
        assert_eq!(again.headers()["idempotent-replayed"], "true");
        assert_eq!(text(again).await, "k of /orders/7, attempt 1");
    }
}

/// The matched path of 0.7 is a type that the crate does not know: the path takes its place, and two ids are two
/// routes unless the layer names the route.
#[tokio::test]
async fn the_route_is_the_path_unless_it_is_named() {
    let by_path = Router::new().route("/orders/:id", post(route)).layer(layer());
    assert_eq!(text(ask(&by_path, "/orders/1").await).await, "k of /orders/1, attempt 1");
    assert_eq!(text(ask(&by_path, "/orders/2").await).await, "k of /orders/2, attempt 1");

    let named = Router::new().route("/orders/:id", post(route)).layer(layer().route("orders"));
    assert_eq!(text(ask(&named, "/orders/1").await).await, "k of orders, attempt 1");
    assert_eq!(ask(&named, "/orders/2").await.status(), StatusCode::UNPROCESSABLE_ENTITY);
}

/// A nested router cuts its prefix off the path, and only the crate's own Axum could say what it was.
#[tokio::test]
async fn nested_routers_name_their_routes() {
    let nested = |name: &'static str, shared: &IdempotencyLayer| {
        Router::new().route("/run", post(route)).layer(shared.clone().route(name))
    };
    let shared = layer();
    let app = Router::new().nest("/pay", nested("pay", &shared)).nest("/refund", nested("refund", &shared));
    assert_eq!(text(ask(&app, "/pay/run").await).await, "k of pay, attempt 1");
    assert_eq!(text(ask(&app, "/refund/run").await).await, "k of refund, attempt 1");
}

#[tokio::test]
async fn beside_layers_of_tower_http_0_6_in_one_service_builder() {
    let stack = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        .layer(CorsLayer::new().allow_headers(cors::ALLOW_HEADERS).expose_headers(cors::EXPOSE_HEADERS))
        .layer(CompressionLayer::new())
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(10)))
        .layer(layer());
    let app = Router::new().route("/orders", post(route)).layer(stack);
    assert_eq!(ask(&app, "/orders").await.status(), StatusCode::OK);
    assert_eq!(ask(&app, "/orders").await.headers()["idempotent-replayed"], "true");
}

#[tokio::test]
async fn a_state_and_a_layer_of_the_application() {
    let app = Router::new()
        .route(
            "/orders",
            post(|axum::extract::State(name): axum::extract::State<Arc<str>>| async move { name.to_string() }),
        )
        .layer(layer())
        .with_state(Arc::from("shop"));
    assert_eq!(text(ask(&app, "/orders").await).await, "shop");
    assert_eq!(text(ask(&app, "/orders").await).await, "shop");
}
