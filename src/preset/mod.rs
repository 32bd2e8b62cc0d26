//! Payment platforms, webhooks and API conventions, in one line each.
//!
//! A platform repeats its callbacks by design, puts its identifier in a place of its own, and expects a particular
//! answer. A preset covers these three. The layer's ordinary calls after it can adjust everything that it sets.
//!
//! For callbacks and webhooks:
//!
//! - A duplicate of a delivery that succeeded receives the platform's own success answer, so that the platform does not
//!   send it again. Success is 2xx only: no platform here follows a redirection.
//! - A duplicate of a delivery that still runs receives the platform's own "send it again" answer, and not the success
//!   answer, since the first delivery may still fail.
//! - A handler that fails releases the key, so that the next delivery runs. If the layer is set to keep failures, a
//!   duplicate receives the failure again.
//! - Redeliveries differ in their bytes (a new time stamp, nonce, signature, ciphertext), so there is no fingerprint,
//!   except for senders that sign the body and not the identifier. Senders authenticate themselves in the request, so
//!   all callers count as one.
//! - Records are kept for longer than the platform keeps sending: seven days, or 32 for Adyen.
//!
//! The [guide] compares the platforms, and has recipes for more.
//!
//! With the feature `presets`. A [`Preset`] of your own needs no feature.
//!
//! # What is left to you
//!
//! **A preset does not verify signatures.** Do that with [`verify`](crate::IdempotencyLayer::verify), which sees the
//! raw bytes before anything is claimed: otherwise anybody can have an identifier recorded as done before the platform
//! sends it. `examples/signed_callbacks` has the verification for five platforms. The handler still has to check that
//! the amount and the order are what you expect.
//!
#![cfg_attr(feature = "presets", doc = "```")]
#![cfg_attr(not(feature = "presets"), doc = "```ignore")]
//! use std::future::ready;
//!
//! use axum::{
//!     Router,
//!     body::{Body, Bytes, to_bytes},
//!     http::{Request, Response, StatusCode},
//!     routing::post,
//! };
//! use tower::ServiceExt;
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, preset};
//!
//! /// Stands for the platform's own rule: here, that the header repeats the last word of the body.
//! fn verifies(signature: Option<&[u8]>, body: &[u8]) -> bool {
//!     signature.is_some_and(|signature| body.ends_with(signature))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let callback = IdempotencyLayer::new(MemoryStore::new()).preset(preset::alipay()).verify(|head, body| {
//!     let signature = head.headers.get("x-signature").map(|value| value.as_bytes());
//!     let mut refused = Response::new(Bytes::from_static(b"fail"));
//!     *refused.status_mut() = StatusCode::UNAUTHORIZED;
//!     ready(if verifies(signature, &body) { Ok(()) } else { Err(refused) })
//! });
//! let app: Router = Router::new().route("/notify/alipay", post(|| async { "success" }).layer(callback));
//!
//! let deliver = |signature: &str| {
//!     let request = Request::post("/notify/alipay")
//!         .header("Content-Type", "application/x-www-form-urlencoded")
//!         .header("X-Signature", signature);
//!     app.clone().oneshot(request.body(Body::from("notify_id=7f0c&trade_status=TRADE_SUCCESS")).unwrap())
//! };
//! assert_eq!(deliver("forged").await.unwrap().status(), StatusCode::UNAUTHORIZED);
//! for _ in 0..2 {
//!     let answer = deliver("SUCCESS").await.unwrap();
//!     assert_eq!(to_bytes(answer.into_body(), 64).await.unwrap(), "success");
//! }
//! # }
//! ```
#![cfg_attr(feature = "presets", doc = "\n[guide]: crate::guide::callbacks")]
#![cfg_attr(
    not(feature = "presets"),
    doc = "\n[guide]: https://docs.rs/tower-idempotency/latest/tower_idempotency/guide/callbacks/index.html"
)]

#[cfg(feature = "presets")]
mod adyen;
#[cfg(feature = "presets")]
mod alipay;
#[cfg(feature = "presets")]
mod api;
#[cfg(feature = "presets")]
mod callback;
#[cfg(feature = "presets")]
mod unsigned_id;
#[cfg(feature = "presets")]
mod webhook;
#[cfg(feature = "presets")]
mod wechat_pay;
#[cfg(feature = "presets")]
mod word;

#[cfg(feature = "presets")]
#[cfg_attr(docsrs, doc(cfg(feature = "presets")))]
pub use self::{
    adyen::adyen,
    alipay::{alipay, alipay_by_order},
    api::{ietf_draft, stripe_api},
    unsigned_id::{github_webhook, github_webhook_by_body, shopify_webhook, shopify_webhook_by_body},
    webhook::{paypal, square, standard_webhooks, stripe_webhook},
    wechat_pay::{wechat_pay_v2, wechat_pay_v3},
};
pub use crate::layer::Preset;
