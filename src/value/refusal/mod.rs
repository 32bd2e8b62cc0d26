//! The reasons why a request is not run.

mod problem;
mod text;

use std::{borrow::Cow, error::Error, fmt, time::Duration};

use super::{KeyError, Mismatch, StoreError, StoreErrorKind};

/// The reason why a request was not run.
///
/// Each refusal has a name ([`name`](Self::name)), which is the fragment of the problem's `type` (RFC 9457), and a
/// status. 400, 409 and 422 are those of draft-ietf-httpapi-idempotency-key-header-07, section 2.7.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The request has no key, and the route requires one.
    KeyMissing,
    /// The request's key is malformed.
    #[non_exhaustive]
    KeyInvalid {
        /// What is wrong with it.
        error: KeyError,
    },
    /// The request has no scope, and the route requires one.
    ScopeMissing,
    /// The request's scope is malformed.
    #[non_exhaustive]
    ScopeInvalid {
        /// What is wrong with it.
        error: KeyError,
    },
    /// The extension that the scope is taken from is missing: no layer further out has inserted one of this type.
    #[non_exhaustive]
    ExtensionMissing {
        /// The name of the type.
        type_name: &'static str,
    },
    /// The body is not in the form that the fingerprint requires.
    #[non_exhaustive]
    BodyInvalid {
        /// What is wrong with it, as a sentence for the client.
        detail: Cow<'static, str>,
    },
    /// The body did not arrive whole.
    BodyIncomplete,
    /// The body made no progress for too long.
    BodyTimeout,
    /// The body is longer than the layer or a layer further out allows.
    #[non_exhaustive]
    BodyTooLarge {
        /// The most bytes that the layer allows; `None` if the limit is not its own.
        limit: Option<usize>,
    },
    /// The key was used for a request with other content.
    KeyReused,
    /// The key was used by another caller.
    OtherCaller,
    /// The record of the key was written by a later version of the crate, or made with a secret that is not at hand.
    RecordIncompatible,
    /// The first request with this key still runs.
    #[non_exhaustive]
    RequestInProgress {
        /// The time left of its lease; it may be renewed.
        left: Duration,
    },
    /// The request was made before, and the route refuses the second one.
    DuplicateRequest,
    /// The request was made before, and its answer was not kept.
    ResponseNotRetained,
    /// The request was made before, and the answer that was kept cannot be read: the key that it is encrypted under is
    /// not at hand, or it was changed.
    AnswerUnreadable,
    /// The request was made before, and whether its caller may have the kept answer could not be decided.
    ReplayNotDecided,
    /// The request was begun before, and nobody knows how it ended.
    OutcomeUnknown,
    /// The handler of the first request failed without an answer.
    HandlerFailed,
    /// The handler answered, but what it did in its transaction was rolled back.
    RolledBack,
    /// The handler answered, but it is not known whether its transaction was committed.
    CommitUnknown,
    /// The request has no token, and the route requires one.
    TokenMissing,
    /// The token was used before.
    TokenUsed,
    /// The token was never issued, has expired, or is for another purpose or principal.
    TokenInvalid,
    /// The caller has left too many operations unfinished.
    TooManyUnfinished,
    /// Too many operations whose clients have left are unfinished.
    ServerBusy,
    /// The message log cannot be written.
    NotLogged,
    /// The store does not answer.
    StoreUnavailable,
    /// The store has no room for another record.
    StoreFull,
    /// The scope of the key, or the principal of the token, holds as many records as the store allows.
    TooManyKeys,
}

impl Refusal {
    pub(crate) fn key_invalid(error: KeyError) -> Self {
        Self::KeyInvalid { error }
    }

    pub(crate) fn scope_invalid(error: KeyError) -> Self {
        Self::ScopeInvalid { error }
    }
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::Full => Self::StoreFull,
            StoreErrorKind::TooManyKeys => Self::TooManyKeys,
            // Of a claim, only the body that is kept with it can be large.
            StoreErrorKind::TooLarge => Self::BodyTooLarge { limit: None },
            _ => Self::StoreUnavailable,
        }
    }
}

impl From<Mismatch> for Refusal {
    fn from(mismatch: Mismatch) -> Self {
        match mismatch {
            Mismatch::Fingerprint => Self::KeyReused,
            Mismatch::Caller => Self::OtherCaller,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name(), self.detail())
    }
}

/// It has no source: the text names the cause.
impl Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each. The compiler asks for the next one here.
    fn all() -> Vec<Refusal> {
        use Refusal::*;
        let after = |refusal: &Refusal| {
            Some(match refusal {
                KeyMissing => KeyInvalid { error: KeyError::Empty },
                KeyInvalid { .. } => ScopeMissing,
                ScopeMissing => ScopeInvalid { error: KeyError::Repeated },
                ScopeInvalid { .. } => ExtensionMissing { type_name: "User" },
                ExtensionMissing { .. } => BodyInvalid { detail: "The body is not JSON.".into() },
                BodyInvalid { .. } => BodyIncomplete,
                BodyIncomplete => BodyTimeout,
                BodyTimeout => BodyTooLarge { limit: Some(1024) },
                BodyTooLarge { .. } => KeyReused,
                KeyReused => OtherCaller,
                OtherCaller => RecordIncompatible,
                RecordIncompatible => RequestInProgress { left: Duration::ZERO },
                RequestInProgress { .. } => DuplicateRequest,
                DuplicateRequest => ResponseNotRetained,
                ResponseNotRetained => AnswerUnreadable,
                AnswerUnreadable => ReplayNotDecided,
                ReplayNotDecided => OutcomeUnknown,
                OutcomeUnknown => HandlerFailed,
                HandlerFailed => RolledBack,
                RolledBack => CommitUnknown,
                CommitUnknown => TokenMissing,
                TokenMissing => TokenUsed,
                TokenUsed => TokenInvalid,
                TokenInvalid => TooManyUnfinished,
                TooManyUnfinished => TooManyKeys,
                TooManyKeys => ServerBusy,
                ServerBusy => NotLogged,
                NotLogged => StoreUnavailable,
                StoreUnavailable => StoreFull,
                StoreFull => return None,
            })
        };
        std::iter::successors(Some(KeyMissing), after).collect()
    }

    #[test]
    fn each_name_is_that_of_its_variant_and_explained() {
        let guide = include_str!("../../../docs/refusals.md");
        let explained: Vec<_> = guide.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let names: Vec<_> = all().iter().map(Refusal::name).collect();
        for refusal in all() {
            let variant = format!("{refusal:?}");
            let variant = variant.split(' ').next().unwrap();
            let mut slug = String::new();
            for character in variant.chars() {
                if character.is_ascii_uppercase() && !slug.is_empty() {
                    slug.push('-');
                }
                slug.push(character.to_ascii_lowercase());
            }
            assert_eq!(refusal.name(), slug);
            assert!(explained.contains(&refusal.name()), "docs/refusals.md does not explain {}", refusal.name());
            assert_eq!(refusal.to_string(), format!("{slug}: {}", refusal.detail()));
        }
        assert!(explained.iter().all(|name| names.contains(name)), "docs/refusals.md explains what there is not");
    }

    #[test]
    fn the_guide_tells_status_and_retryable_as_they_are() {
        let guide = include_str!("../../../docs/refusals.md");
        for refusal in all() {
            let (name, status) = (refusal.name(), refusal.status());
            let retryable = if refusal.is_retryable() { "yes" } else { "no" };
            let row = format!("| [`{name}`](#{name}) | {} | {retryable} |", status.as_u16());
            assert!(guide.contains(&row), "docs/refusals.md lacks the row {row}");
        }
    }

    #[test]
    fn no_client_is_told_what_only_the_service_can_do() {
        for refusal in all() {
            for word in ["`", "scope::", "response_limit", "layer"] {
                assert!(!refusal.detail().contains(word), "{refusal}");
            }
        }
    }
}
