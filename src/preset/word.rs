//! Platforms that read the text of an answer: an answer with status 200 may report a failure.

use http::StatusCode;

use super::callback::response;
use crate::{Keep, policy::Reply};

/// Keeps the answers with a success status and without a failure text.
pub(super) fn unless(says_failure: fn(&[u8]) -> bool) -> Keep {
    Keep::when(move |answer| answer.status().is_success() && !says_failure(answer.body()))
}

/// Returns the success answer, unless the kept answer reports a failure: then the kept answer is sent again.
pub(super) fn by_word(
    status: StatusCode,
    content_type: Option<&'static str>,
    word: &'static str,
    says_failure: fn(&[u8]) -> bool,
) -> Reply {
    Reply::from_fn(move |duplicate| match duplicate.kept() {
        Some(kept) if says_failure(kept.body()) => kept.to_response(),
        _ => response(status, content_type, word),
    })
}
