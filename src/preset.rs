//! Payment platforms, webhooks and API conventions, in one line each.
//!
//! A platform repeats its callbacks by design, puts its identifier where it likes, and reads a very particular answer.
//! A preset knows these three. Everything that it sets can be adjusted by the layer's ordinary calls after it.
//!
//! For callbacks and webhooks:
//!
//! - A duplicate of a delivery that succeeded gets the platform's own word of success, so that it is not sent again.
//! - A duplicate of one that still runs gets the platform's own "send it again": it must not hear that all is well, since
//!   the first may fail yet.
//! - A handler that fails releases the key, so that the next delivery runs.
//! - Redeliveries differ in their bytes (a new time stamp, nonce, signature, ciphertext), so there is no fingerprint; and
//!   senders prove themselves in the request, so all callers are one.
//! - Records are kept for longer than the platform goes on sending: seven days.
//!
//! # What is left to you
//!
//! **A preset verifies no signature.** Put a layer that does *outside* this one, over the raw bytes: otherwise anybody can
//! have an identifier remembered as done before the platform sends it. The handler still has to check that the amount and
//! the order are what you expect.
//!
//! ```
//! use axum::{
//!     Router,
//!     body::{Body, to_bytes},
//!     extract::Request,
//!     http::StatusCode,
//!     middleware::{self, Next},
//!     response::{IntoResponse, Response},
//!     routing::post,
//! };
//! use tower::ServiceExt;
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, preset};
//!
//! /// Stands for the platform's own rule: here, that the header repeats the last word of the body.
//! fn verifies(signature: Option<&str>, body: &[u8]) -> bool {
//!     signature.is_some_and(|signature| body.ends_with(signature.as_bytes()))
//! }
//!
//! async fn verify(request: Request, next: Next) -> Response {
//!     let (parts, body) = request.into_parts();
//!     let Ok(body) = to_bytes(body, 64 * 1024).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
//!     let signature = parts.headers.get("x-signature").and_then(|value| value.to_str().ok());
//!     if !verifies(signature, &body) {
//!         return StatusCode::UNAUTHORIZED.into_response();
//!     }
//!     next.run(Request::from_parts(parts, Body::from(body))).await
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let app: Router = Router::new()
//!     .route("/notify/alipay", post(|| async { "success" }))
//!     .layer(IdempotencyLayer::new(MemoryStore::new()).preset(preset::alipay()))
//!     // Added last, so outermost: what does not verify never gets as far as the store.
//!     .layer(middleware::from_fn(verify));
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

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};

use crate::{
    IdempotencyLayer, Keep, OnDuplicate, Policy, Preset, Reply, WhileRunning, fingerprint,
    key::{self, KeyExtractor},
    scope,
};

/// Longer than any of the senders here goes on sending.
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

const TEXT: Option<&str> = Some("text/plain; charset=utf-8");
const XML: Option<&str> = Some("text/xml; charset=utf-8");
const JSON: Option<&str> = Some("application/json");

/// Alipay's asynchronous notifications, by notification: the form field `notify_id`.
///
/// Success is the text `success`, anything else is sent again: eight times in 25 hours. A handler that answers `fail` with
/// status 200 has failed. `notify_id` is the same in all
/// deliveries of one notification; but one order has several notifications (paid, refunded, closed), and each of them
/// reaches the handler once. To run once for an *order*, see [`alipay_by_order`].
///
/// The handler still checks `app_id`, `seller_id`, the order number and `total_amount` against the order.
///
/// Source: "Asynchronous notification", Alipay Open Platform; the schedule as quoted by its integrators.
pub fn alipay() -> Preset {
    alipay_by(key::form("notify_id"))
}

/// Alipay's asynchronous notifications, by merchant order number: the form field `out_trade_no`, of each
/// `trade_status` once.
///
/// The platform may draw up a second notification, with a `notify_id` of its own, for what it has told already. By order
/// number and status, that is a duplicate too. A partial refund is told with the status of the trade, so several partial
/// refunds of one order would be taken for one: where you refund in parts, use [`alipay`].
pub fn alipay_by_order() -> Preset {
    alipay_by(key::all([key::form("out_trade_no"), key::form("trade_status")]))
}

fn alipay_by(key: KeyExtractor) -> Preset {
    let again = reply(StatusCode::SERVICE_UNAVAILABLE, TEXT, "fail");
    let by_word = callback(key, reply(StatusCode::OK, TEXT, "success"), again);
    let says_failure = |body: &[u8]| {
        let word = body.trim_ascii();
        word.eq_ignore_ascii_case(b"fail") || word.eq_ignore_ascii_case(b"failure")
    };
    Preset::new(move |layer| layer.preset(by_word).keep(unless(says_failure)))
}

/// WeChat Pay v2's notifications: the XML element `out_trade_no`, within the merchant `mch_id`.
///
/// Success is `return_code` SUCCESS in XML, anything else is sent again: ten times in about three hours. A handler that
/// answers another `return_code` with status 200 has failed. The number is the merchant's own, which is why the merchant is the [scope](IdempotencyLayer::scope).
///
/// The handler still checks `result_code`, `appid` and `total_fee` against the order. Refund notifications of v2 are
/// encrypted, and have no `out_trade_no` outside the ciphertext: they need a route and a key of their own.
///
/// Source: "Payment result notification", WeChat Pay API v2.
pub fn wechat_pay_v2() -> Preset {
    const SUCCESS: &str =
        "<xml><return_code><![CDATA[SUCCESS]]></return_code><return_msg><![CDATA[OK]]></return_msg></xml>";
    const FAIL: &str =
        "<xml><return_code><![CDATA[FAIL]]></return_code><return_msg><![CDATA[IN PROGRESS]]></return_msg></xml>";
    let merchant = scope::from_key(key::xml("mch_id"));
    let order = callback(
        key::xml("out_trade_no"),
        reply(StatusCode::OK, XML, SUCCESS),
        reply(StatusCode::SERVICE_UNAVAILABLE, XML, FAIL),
    );
    let says_failure = |body: &[u8]| {
        let body = String::from_utf8_lossy(body);
        let code = body.split_once("<return_code>").map(|(_, code)| code.trim_start());
        code.is_some_and(|code| !code.starts_with("<![CDATA[SUCCESS]]>") && !code.starts_with("SUCCESS<"))
    };
    Preset::new(move |layer| layer.preset(order).scope(merchant).keep(unless(says_failure)))
}

/// WeChat Pay v3's notifications: the JSON member `id`, which is the notification's own.
///
/// Success is 200 or 204 without a body, 4xx and 5xx are sent again: over 24 hours and 4 minutes. The status outranks the
/// body: a 200 with `FAIL` in it stops the deliveries.
///
/// The handler still decrypts `resource` and checks the order in it; one order can have several notifications.
///
/// Source: "Payment notification", WeChat Pay API v3.
pub fn wechat_pay_v3() -> Preset {
    callback(
        key::json("/id"),
        reply(StatusCode::NO_CONTENT, None, ""),
        reply(StatusCode::SERVICE_UNAVAILABLE, JSON, r#"{"code":"FAIL","message":"in progress"}"#),
    )
}

/// Stripe's webhooks: the JSON member `id` of the event.
///
/// Success is any 2xx, anything else is sent again: for up to three days. Stripe may send two events for one change; where
/// that matters, compare `data.object.id` with `type` in the handler. Events come in any order.
///
/// Source: "Receive Stripe events in your webhook endpoint", Stripe's documentation.
pub fn stripe_webhook() -> Preset {
    webhook(key::json("/id"))
}

/// GitHub's webhooks: the header `X-GitHub-Delivery`.
///
/// Success is any 2xx within 10 seconds. Nothing is sent again by itself; a redelivery by hand has the same identifier,
/// within three days. If you redeliver in order to run a successful delivery again, it is answered as a duplicate.
///
/// Source: "Best practices for using webhooks", GitHub's documentation.
pub fn github_webhook() -> Preset {
    webhook(key::header("X-GitHub-Delivery"))
}

/// Standard Webhooks: the header `webhook-id`, which is the same in all deliveries of a message.
///
/// Success is any 2xx. The example schedule of the specification goes on for more than 75 hours, and a sender's own may
/// go on for longer: then lengthen the [retention](IdempotencyLayer::retention).
///
/// Source: the Standard Webhooks specification.
pub fn standard_webhooks() -> Preset {
    webhook(key::header("webhook-id"))
}

/// Shopify's webhooks: the header `X-Shopify-Event-Id`, or `X-Shopify-Webhook-Id` where there is none.
///
/// Success is any 2xx within 5 seconds, anything else is sent again: eight times in four hours. Shopify's documents name
/// either header, depending on their age; the first is the event's, the second the delivery's. Several subscriptions to
/// one topic share the event's: give each a route of its own.
///
/// Source: "Ignore duplicate webhooks", Shopify's documentation.
pub fn shopify_webhook() -> Preset {
    webhook(key::first([key::header("X-Shopify-Event-Id"), key::header("X-Shopify-Webhook-Id")]))
}

/// For an API of one's own that keeps Stripe's convention: `Idempotency-Key`, up to 255 bytes, every answer kept for 24
/// hours, errors of the server among them.
///
/// A panic is remembered too, as 500. What differs: a key that is reused for another request is told so with 422 instead
/// of 400.
///
/// Source: "Idempotent requests", Stripe's API reference.
pub fn stripe_api() -> Preset {
    Preset::new(|layer| layer.key(key::header("Idempotency-Key")).policy(Policy::replay().keep(Keep::Everything)))
}

/// For an API of one's own, to the letter of draft-ietf-httpapi-idempotency-key-header-07: the key is a Structured Field
/// string and required (sections 2.1 and 2.7), the fingerprint is of the whole request (2.4), and a retry gets the result
/// of the first, "success or an error" (2.6).
///
/// The draft asks that the expiry of keys be published (2.5.2): say in your documentation that it is 24 hours, or what you
/// set it to. Bare keys, which most clients send today, are refused.
pub fn ietf_draft() -> Preset {
    Preset::new(|layer| {
        layer.key(key::header("Idempotency-Key").strict()).policy(Policy::replay().keep(Keep::Everything))
    })
}

fn webhook(key: KeyExtractor) -> Preset {
    callback(key, reply(StatusCode::OK, None, ""), reply(StatusCode::SERVICE_UNAVAILABLE, None, ""))
}

fn callback(key: KeyExtractor, done: Reply, send_again: Reply) -> Preset {
    Preset::new(|layer: IdempotencyLayer| {
        layer
            .key(key)
            .unscoped()
            .fingerprint(fingerprint::off())
            .on_duplicate(OnDuplicate::Respond(done))
            .while_running(WhileRunning::Respond(send_again))
            .keep(Keep::Success)
            .retention(WEEK)
    })
}

/// A platform that reads words: an answer of 200 that says that it failed is sent again, so its key is released.
fn unless(says_failure: fn(&[u8]) -> bool) -> Keep {
    Keep::when(move |answer| answer.status().is_success() && !says_failure(answer.body()))
}

fn reply(status: StatusCode, content_type: Option<&'static str>, body: &'static str) -> Reply {
    let mut response = Response::new(Bytes::from_static(body.as_bytes()));
    *response.status_mut() = status;
    if let Some(content_type) = content_type {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    Reply::fixed(response)
}
