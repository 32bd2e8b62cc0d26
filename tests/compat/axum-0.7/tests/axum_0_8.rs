//! The layer in a router of Axum 0.8, beside layers of tower-http 0.6: both versions of tower-http are promised.
#![cfg(feature = "axum-of-the-crate")]

use std::time::Duration;

use axum_0_8::{Router, body::Body, extract::Request, http::StatusCode, response::Response, routing::post};
use http_body_util::BodyExt;
use tower::{ServiceBuilder, ServiceExt};
use tower_http::{compression::CompressionLayer, cors::CorsLayer, timeout::TimeoutLayer, trace::TraceLayer};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation, cors};

async fn route(operation: Operation) -> String {
    format!("{} of {}", operation.key(), operation.record_key().route())
}

async fn ask(app: &Router) -> Response {
    let request = Request::post("/orders/7").header("Idempotency-Key", "k").body(Body::from("content")).unwrap();
    app.clone().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn in_one_service_builder() {
    let timeout = || TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, Duration::from_secs(10));
    let layer = || IdempotencyLayer::new(MemoryStore::new());
    let outside = ServiceBuilder::new()
        .layer(TraceLayer::new_for_http())
        .layer(CorsLayer::new().allow_headers(cors::ALLOW_HEADERS).expose_headers(cors::EXPOSE_HEADERS))
        .layer(CompressionLayer::new())
        .layer(timeout())
        .layer(layer());
    let inside = ServiceBuilder::new().layer(layer()).layer(timeout()).layer(CorsLayer::new());
    for app in [
        Router::new().route("/orders/{id}", post(route)).layer(outside),
        Router::new().route("/orders/{id}", post(route)).layer(inside),
    ] {
        let first = ask(&app).await;
        let text = first.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(text, "k of /orders/{id}");
        let again = ask(&app).await;
        assert_eq!(
            (again.status(), &again.headers()["idempotent-replayed"]),
            (StatusCode::OK, &"true".parse().unwrap())
        );
    }
}
