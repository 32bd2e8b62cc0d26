//! What kind of response it is: one that can be kept, or one that is passed on.

use http::{
    HeaderMap, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
    response::Parts,
};
use http_body::Body;

/// Returns whether the answer is a `text/event-stream`, with or without parameters.
pub(in crate::http) fn is_event_stream(headers: &HeaderMap) -> bool {
    const EVENT_STREAM: &[u8] = b"text/event-stream";
    let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes().trim_ascii_start());
    let Some((media_type, rest)) = content_type.split_at_checked(EVENT_STREAM.len()) else { return false };
    media_type.eq_ignore_ascii_case(EVENT_STREAM) && matches!(rest.trim_ascii_start().first(), None | Some(b';'))
}

/// Returns whether neither the head nor the body says how long the answer is.
pub(in crate::http) fn is_of_unknown_length(parts: &Parts, body: &impl Body) -> bool {
    body.size_hint().exact().is_none() && !parts.headers.contains_key(CONTENT_LENGTH)
}

/// Returns whether the status is an error.
pub(in crate::http) fn has_failed(status: StatusCode) -> bool {
    status.is_client_error() || status.is_server_error()
}

/// Returns whether it is an upgrade, or a part of an answer: neither can be replayed.
pub(in crate::http) fn is_partial(status: StatusCode) -> bool {
    matches!(status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::PARTIAL_CONTENT)
}
