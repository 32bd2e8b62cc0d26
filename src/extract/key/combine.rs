//! Keys of several parts.

use std::sync::Arc;

use super::extractor::{KeyExtractor, KeySource};

/// Joins several parts to one key. All of them have to be there.
///
/// Each part follows its length (`3:100,5:order,`), so that two lists of parts never make one key.
///
/// ```
/// use tower_idempotency::key;
///
/// let per_terminal = key::all([key::header("X-Terminal"), key::query("receipt")]);
/// # drop(per_terminal);
/// ```
///
/// # Panics
///
/// Panics if [`content`](super::content) is one of them.
#[track_caller]
pub fn all(parts: impl IntoIterator<Item = KeyExtractor>) -> KeyExtractor {
    let parts: Arc<[_]> = parts.into_iter().collect();
    let has_content = parts.iter().any(KeyExtractor::ends_in_content);
    assert!(!has_content, "key::all({parts:?}): {CONTENT_ELSEWHERE}");
    KeyExtractor(KeySource::All(parts))
}

/// Takes the first of several keys that is there.
///
/// A malformed key ends the search: the request is refused. [`content`](super::content) may be the last of them:
///
/// ```
/// use tower_idempotency::key;
///
/// // A client that sends no key is at least protected against a double click.
/// let by_header_or_content = key::first([key::header("Idempotency-Key"), key::content()]);
/// # drop(by_header_or_content);
/// ```
///
/// # Panics
///
/// Panics if [`content`](super::content) is one of them but not the last.
#[track_caller]
pub fn first(of: impl IntoIterator<Item = KeyExtractor>) -> KeyExtractor {
    let of: Arc<[_]> = of.into_iter().collect();
    let hides_others = of.iter().rev().skip(1).any(KeyExtractor::ends_in_content);
    assert!(!hides_others, "key::first({of:?}): {CONTENT_ELSEWHERE}");
    KeyExtractor(KeySource::First(of))
}

pub(in crate::extract) const CONTENT_ELSEWHERE: &str =
    "`key::content()` is always there, so it can only be the whole key, or the last of `key::first(..)`";
