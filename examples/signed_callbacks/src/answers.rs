//! What a sender receives whose signature does not verify.

use axum::{
    body::Bytes,
    http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE},
};

pub(crate) fn refused(content_type: &'static str, body: String) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// For senders that read the status only. The reason is for the log of deliveries that they show.
pub(crate) fn unauthorized(reason: &str) -> Response<Bytes> {
    refused("text/plain; charset=utf-8", reason.to_owned())
}
