//! The headers that a CORS layer has to allow and expose, so that a page of another origin can use the layers.
//!
//! ```
//! use axum::{Router, http::{HeaderValue, Method, header::{AUTHORIZATION, CONTENT_TYPE}}, routing::post};
//! use tower_http::cors::CorsLayer;
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, cors};
//!
//! let cors = CorsLayer::new()
//!     .allow_origin(HeaderValue::from_static("https://shop.example"))
//!     .allow_methods([Method::POST])
//!     .allow_headers([&cors::ALLOW_HEADERS[..], &[AUTHORIZATION, CONTENT_TYPE]].concat())
//!     .expose_headers(cors::EXPOSE_HEADERS);
//!
//! let app: Router = Router::new()
//!     .route("/orders", post(|| async { "ordered" }))
//!     .layer(IdempotencyLayer::new(MemoryStore::new()))
//!     // Outside: it answers the browser's preflight, and its fields are made anew for each replay.
//!     .layer(cors);
//! # drop(app);
//! ```

use http::{HeaderName, header::RETRY_AFTER};

/// The request headers that a page has to be allowed to send: `Idempotency-Key`, and `X-Submit-Token` for a
/// [`TokenLayer`](crate::TokenLayer).
///
/// A layer that takes its key or its token from a header of another name needs that name instead.
pub const ALLOW_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("idempotency-key"), HeaderName::from_static("x-submit-token")];

/// The response headers that a page has to be allowed to read: `Idempotent-Replayed`, `Retry-After`, and
/// `X-Submit-Token`, in which a token layer can send a [new token](crate::TokenLayer::rotate_on_failure).
pub const EXPOSE_HEADERS: [HeaderName; 3] =
    [HeaderName::from_static("idempotent-replayed"), RETRY_AFTER, HeaderName::from_static("x-submit-token")];
