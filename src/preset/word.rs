//! Platforms that read a word: an answer with status 200 may say that it failed.

use http::StatusCode;

use super::callback::response;
use crate::{Keep, Reply};

/// Keeps the answers with a status of success and without a word of failure.
pub(super) fn unless(says_failure: fn(&[u8]) -> bool) -> Keep {
    Keep::when(move |answer| answer.status().is_success() && !says_failure(answer.body()))
}

/// Says that all is well, unless what was kept says otherwise.
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
