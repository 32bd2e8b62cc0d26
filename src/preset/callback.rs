//! The settings that all callbacks have in common.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};

use super::Preset;
use crate::{
    IdempotencyLayer, Keep, OnDuplicate, WhileRunning,
    fingerprint::{self, Fingerprint, FingerprintExtractor},
    key::KeyExtractor,
    policy::Reply,
};

/// Longer than most senders keep sending.
const WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub(super) const TEXT: Option<&str> = Some("text/plain; charset=utf-8");
pub(super) const XML: Option<&str> = Some("text/xml; charset=utf-8");
pub(super) const JSON: Option<&str> = Some("application/json");

/// Creates the preset for a sender that reads only the status.
pub(super) fn webhook(key: KeyExtractor) -> Preset {
    callback(key, reply(StatusCode::OK, None, ""), reply(StatusCode::SERVICE_UNAVAILABLE, None, ""))
}

/// Creates the preset for a sender that expects these answers. A redirection is not a success for any of these senders:
/// none of them follows it.
pub(super) fn callback(key: KeyExtractor, done: Reply, send_again: Reply) -> Preset {
    Preset::new(move |layer: IdempotencyLayer| {
        layer
            .key(key.clone())
            .unscoped()
            .fingerprint(fingerprint::off())
            .on_duplicate(OnDuplicate::Respond(for_successes(done.clone())))
            .while_running(WhileRunning::Respond(send_again.clone()))
            .keep(Keep::when(|answer| answer.status().is_success()))
            .retention(WEEK)
    })
}

/// Returns the sender's success answer, unless another policy has kept an answer that is not a success: then that
/// answer is sent again.
fn for_successes(done: Reply) -> Reply {
    Reply::from_fn(move |duplicate| match duplicate.kept() {
        Some(kept) if !kept.status().is_success() => kept.to_response(),
        _ => done.to(duplicate),
    })
}

/// Returns the fingerprint for senders that sign only the body: the identifier in the head may be anybody's.
pub(super) fn bytes_of_the_body() -> FingerprintExtractor {
    fingerprint::from_fn(|_, body| Fingerprint::builder().part(&body[..]).build())
}

pub(super) fn reply(status: StatusCode, content_type: Option<&'static str>, body: &'static str) -> Reply {
    Reply::fixed(response(status, content_type, body))
}

pub(super) fn response(status: StatusCode, content_type: Option<&'static str>, body: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(body.as_bytes()));
    *response.status_mut() = status;
    if let Some(content_type) = content_type {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    }
    response
}
