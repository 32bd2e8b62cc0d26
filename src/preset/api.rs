use bytes::Bytes;
use http::{
    HeaderValue, Response, StatusCode,
    header::{CACHE_CONTROL, CONTENT_TYPE},
};

use super::Preset;
use crate::{Keep, Policy, Refusal, key, service::RefusedRequest};

/// Creates the preset for an API of your own that follows Stripe's convention, so that Stripe's SDKs and similar ones
/// can be its clients. The key is `Idempotency-Key`, up to 255 bytes. The answers of requests that ran are kept for 24
/// hours, including server errors.
///
/// - Every answer and a panic (500) are kept, except those that state that nothing was run: 400, 401, 403, 404, 405,
///   413, 415, 422 and 429. A handler that ran and answers with one of these calls
///   [`Operation::keep`](crate::Operation::keep).
/// - Refusals have Stripe's format, `{"error": {"type", "code", "message"}}`, with the statuses that its SDKs turn into
///   their own errors: a reused key is 400 `idempotency_error`, a key in use is 409 with the code
///   `idempotency_key_in_use`.
/// - `Stripe-Should-Retry` and `X-Should-Retry` state whether a retry is useful
///   ([`sdk_hints`](crate::IdempotencyLayer::sdk_hints)), so that an SDK does not retry a kept 500 or a permanent
///   refusal.
///
/// Source: "Idempotent requests" and "Errors", Stripe's API reference; the retry rules of stripe-python and
/// stripe-node.
pub fn stripe_api() -> Preset {
    const NOTHING_RAN: [StatusCode; 9] = [
        StatusCode::BAD_REQUEST,
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::NOT_FOUND,
        StatusCode::METHOD_NOT_ALLOWED,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        StatusCode::UNPROCESSABLE_ENTITY,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    Preset::new(|layer| {
        layer
            .key(key::header("Idempotency-Key"))
            .policy(Policy::replay().keep(Keep::everything_but(NOTHING_RAN)))
            .sdk_hints()
            .render(stripe_error)
    })
}

/// Returns a refusal in Stripe's format.
fn stripe_error(refused: &RefusedRequest<'_>) -> Response<Bytes> {
    let refusal = refused.refusal();
    let code = match refusal {
        Refusal::RequestInProgress { .. } => "idempotency_key_in_use".to_owned(),
        other => other.name().replace('-', "_"),
    };
    let (kind, status) = match refusal {
        _ if refusal.status().is_server_error() => ("api_error", refusal.status()),
        // Stripe's own answer to another request under a used key, which SDKs recognize by its status.
        _ if refusal.status() == StatusCode::UNPROCESSABLE_ENTITY => ("idempotency_error", StatusCode::BAD_REQUEST),
        Refusal::RequestInProgress { .. }
        | Refusal::DuplicateRequest
        | Refusal::ResponseNotRetained
        | Refusal::AnswerUnreadable
        | Refusal::OutcomeUnknown => ("idempotency_error", refusal.status()),
        _ => ("invalid_request_error", refusal.status()),
    };
    let message = refused.detail();
    let error = serde_json::json!({ "error": { "type": kind, "code": code, "message": message } });
    let mut response = Response::new(Bytes::from(error.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Creates the preset for an API of your own that follows draft-ietf-httpapi-idempotency-key-header-07 to the letter:
/// the key is a Structured Field string and required (sections 2.1 and 2.7), the fingerprint is of the whole request
/// (2.4), and a retry gets the result of the first, "success or an error" (2.6).
///
/// The draft asks that the expiry of keys be published (2.5.2): state in your documentation that it is 24 hours, or the
/// time that you set. Bare keys (without quotes), which most clients send today, are refused.
pub fn ietf_draft() -> Preset {
    Preset::new(|layer| {
        layer.key(key::header("Idempotency-Key").strict()).policy(Policy::replay().keep(Keep::EVERYTHING))
    })
}
