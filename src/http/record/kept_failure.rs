//! What is kept of a failed answer that brings a new token.

use http::{HeaderMap, StatusCode, response::Parts};

use super::response_kind::has_failed;
use crate::{body::Collected, value::ForDuplicates};

/// Returns what is kept of a failed answer: the one for duplicates, if the handler has made one. Its status stays that of a
/// failure, by which a record is known whose token was replaced.
pub(crate) fn kept_failure(parts: &Parts, body: &Collected) -> (StatusCode, HeaderMap, Collected) {
    if let Some(ForDuplicates(answer)) = parts.extensions.get() {
        let status = Some(answer.status()).filter(|status| has_failed(*status)).unwrap_or(parts.status);
        return (status, answer.headers().clone(), Collected { data: answer.body().clone(), trailers: None });
    }
    let body = Collected { data: body.data.clone(), trailers: body.trailers.clone() };
    (parts.status, parts.headers.clone(), body)
}
