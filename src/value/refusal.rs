use std::{borrow::Cow, fmt, time::Duration};

use http::StatusCode;

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
    KeyInvalid(KeyError),
    /// The request has no scope, and the route requires one.
    ScopeMissing,
    /// The request's scope is malformed.
    ScopeInvalid(KeyError),
    /// The extension that the scope is taken from is missing: no layer further out has inserted one of this type.
    ExtensionMissing(&'static str),
    /// The body is not in the form that the fingerprint requires.
    BodyInvalid(Cow<'static, str>),
    /// The body did not arrive whole.
    BodyIncomplete,
    /// The body made no progress for too long.
    BodyTimeout,
    /// The body is longer than this many bytes, or than a layer further out allows.
    BodyTooLarge(Option<usize>),
    /// The key was used for a request with other content.
    KeyReused,
    /// The key was used by another caller.
    OtherCaller,
    /// The record of the key was written by a later version of the crate, or made with a secret that is not at hand.
    RecordIncompatible,
    /// The first request with this key still runs, for this long at least.
    RequestInProgress(Duration),
    /// The request was made before, and the route refuses the second one.
    DuplicateRequest,
    /// The request was made before, and its answer was not kept.
    ResponseNotRetained,
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
    /// The store does not answer.
    StoreUnavailable,
    /// The store has no room for another record.
    StoreFull,
    /// The scope of the key, or the principal of the token, holds as many records as the store allows.
    TooManyKeys,
}

impl Refusal {
    /// Returns the name, as in the fragment of the problem's `type`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyInvalid(_) => "key-invalid",
            Self::ScopeMissing => "scope-missing",
            Self::ScopeInvalid(_) => "scope-invalid",
            Self::ExtensionMissing(_) => "extension-missing",
            Self::BodyInvalid(_) => "body-invalid",
            Self::BodyIncomplete => "body-incomplete",
            Self::BodyTimeout => "body-timeout",
            Self::BodyTooLarge(_) => "body-too-large",
            Self::KeyReused => "key-reused",
            Self::OtherCaller => "other-caller",
            Self::RecordIncompatible => "record-incompatible",
            Self::RequestInProgress(_) => "request-in-progress",
            Self::DuplicateRequest => "duplicate-request",
            Self::ResponseNotRetained => "response-not-retained",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::HandlerFailed => "handler-failed",
            Self::RolledBack => "rolled-back",
            Self::CommitUnknown => "commit-unknown",
            Self::TokenMissing => "token-missing",
            Self::TokenUsed => "token-used",
            Self::TokenInvalid => "token-invalid",
            Self::TooManyUnfinished => "too-many-unfinished",
            Self::ServerBusy => "server-busy",
            Self::StoreUnavailable => "store-unavailable",
            Self::StoreFull => "store-full",
            Self::TooManyKeys => "too-many-keys",
        }
    }

    /// Returns whether the same request, sent again later, can have another outcome: the member `retryable` of the
    /// problem.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::BodyIncomplete
            | Self::BodyTimeout
            | Self::RecordIncompatible
            | Self::RequestInProgress(_)
            | Self::ServerBusy
            | Self::TooManyKeys
            | Self::TooManyUnfinished
            | Self::RolledBack
            | Self::CommitUnknown
            | Self::StoreUnavailable
            | Self::StoreFull => true,
            Self::KeyMissing
            | Self::KeyInvalid(_)
            | Self::ScopeMissing
            | Self::ScopeInvalid(_)
            | Self::ExtensionMissing(_)
            | Self::BodyInvalid(_)
            | Self::BodyTooLarge(_)
            | Self::KeyReused
            | Self::OtherCaller
            | Self::DuplicateRequest
            | Self::ResponseNotRetained
            | Self::OutcomeUnknown
            | Self::HandlerFailed
            | Self::TokenMissing
            | Self::TokenUsed
            | Self::TokenInvalid => false,
        }
    }

    /// Returns what the operator of the service can do about it, for logs, not for clients.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::ScopeMissing => {
                "if every caller has a scope, the layer that finds it (such as the authentication) has to be outside this \
                 one, and the extension has to be of the type that `scope::extension` names"
            }
            Self::OtherCaller => {
                "if one caller's credentials change between tries, say whose key it is with `.scope(..)`"
            }
            Self::ResponseNotRetained => {
                "if such answers are to be replayed, raise `.response_limit(..)`; a stream cannot be kept"
            }
            Self::OutcomeUnknown => "the record stays so until it is reconciled: see `Reconciler`",
            Self::StoreFull => "raise the store's capacity, or keep records for less long",
            _ => return None,
        })
    }

    /// Returns the status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::KeyMissing
            | Self::KeyInvalid(_)
            | Self::ScopeMissing
            | Self::ScopeInvalid(_)
            | Self::BodyInvalid(_)
            | Self::BodyIncomplete
            | Self::TokenMissing => StatusCode::BAD_REQUEST,
            Self::TokenInvalid => StatusCode::FORBIDDEN,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::KeyReused | Self::OtherCaller => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RequestInProgress(_)
            | Self::DuplicateRequest
            | Self::ResponseNotRetained
            | Self::OutcomeUnknown
            | Self::RecordIncompatible
            | Self::TokenUsed => StatusCode::CONFLICT,
            Self::TooManyUnfinished | Self::TooManyKeys => StatusCode::TOO_MANY_REQUESTS,
            Self::ExtensionMissing(_) | Self::HandlerFailed | Self::RolledBack => StatusCode::INTERNAL_SERVER_ERROR,
            Self::StoreUnavailable | Self::StoreFull | Self::CommitUnknown | Self::ServerBusy => {
                StatusCode::SERVICE_UNAVAILABLE
            }
        }
    }

    /// Returns a short text that is the same for every refusal of this name.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::KeyMissing => "The idempotency key is missing",
            Self::KeyInvalid(_) => "The idempotency key is invalid",
            Self::ScopeMissing => "The scope of the idempotency key is missing",
            Self::ScopeInvalid(_) => "The scope of the idempotency key is invalid",
            Self::ExtensionMissing(_) => "The service is not set up correctly",
            Self::BodyInvalid(_) => "The request body is invalid",
            Self::BodyIncomplete => "The request body is incomplete",
            Self::BodyTimeout => "The request body stood still",
            Self::BodyTooLarge(_) => "The request body is too large",
            Self::KeyReused => "The idempotency key was used for another request",
            Self::OtherCaller => "The idempotency key was used by another caller",
            Self::RecordIncompatible => "The record of the idempotency key cannot be compared",
            Self::RequestInProgress(_) => "A request with this idempotency key is in progress",
            Self::DuplicateRequest => "The request was made before",
            Self::ResponseNotRetained => "The answer to this request was not retained",
            Self::OutcomeUnknown => "The outcome of this request is unknown",
            Self::HandlerFailed => "The handler of this request failed",
            Self::RolledBack => "The request was rolled back",
            Self::CommitUnknown => "Whether the request was committed is unknown",
            Self::TokenMissing => "The token is missing",
            Self::TokenUsed => "The token was used before",
            Self::TokenInvalid => "The token is invalid",
            Self::TooManyUnfinished => "Too many operations are unfinished",
            Self::ServerBusy => "The server has too many unfinished operations",
            Self::StoreUnavailable => "The idempotency store is unavailable",
            Self::StoreFull => "The idempotency store is full",
            Self::TooManyKeys => "Too many idempotency keys are in use",
        }
    }

    /// Returns what the client can do about it.
    #[must_use]
    pub fn detail(&self) -> Cow<'static, str> {
        let text = match self {
            Self::KeyMissing => "This operation must be sent with an idempotency key.",
            Self::KeyInvalid(error) => return format!("{error}.").into(),
            Self::ScopeInvalid(error) => return format!("{}.", error.told_of("scope")).into(),
            Self::ScopeMissing => "The request lacks what says whose idempotency key it is.",
            Self::ExtensionMissing(_) => "The service cannot tell whose idempotency key it is. Nothing was done.",
            Self::BodyInvalid(what) => return what.clone(),
            Self::BodyIncomplete => "The request body ended early. Nothing was done.",
            Self::BodyTimeout => "The rest of the request body did not come in time. Nothing was done.",
            Self::BodyTooLarge(None) => "The request body is too long. Nothing was done.",
            Self::BodyTooLarge(Some(limit)) => {
                return format!("The request body is longer than {limit} bytes. Nothing was done.").into();
            }
            Self::KeyReused => "The key belongs to a request with other content. Send a new operation with a new key.",
            Self::OtherCaller => {
                "The key belongs to a request with other credentials. Send the request with the credentials of the first \
                 try, and keep the key: with a new one, the operation could run twice."
            }
            Self::RecordIncompatible => {
                "The key belongs to a request that this server cannot compare with this one. It was not run. Send the same \
                 request again later."
            }
            Self::RequestInProgress(_) => {
                "The first request with this key has not ended. Send the same request again later."
            }
            Self::DuplicateRequest => "The same request was made before. It was not run again.",
            Self::ResponseNotRetained => {
                "The request was run before; its answer cannot be sent again. It was not run again."
            }
            Self::OutcomeUnknown => {
                "The request was begun before, and how it ended is not known. It is not run again until that is settled."
            }
            Self::HandlerFailed => "The request was run and failed without an answer. It is not run again.",
            Self::RolledBack => "What the request did was undone. Nothing was kept.",
            Self::CommitUnknown => {
                "The database did not say whether it has committed. Send the same request again: it is answered with \
                 what was committed, or run if nothing was."
            }
            Self::TokenMissing => "This operation must be sent with a token that was issued for it.",
            Self::TokenUsed => "A token is good for one operation, and this one's was done. It was not run again.",
            Self::TokenInvalid => "The token was not issued for this, or has expired. Ask for a new one.",
            Self::TooManyUnfinished => {
                "Earlier requests of this caller still run although their connections were closed. This one was not run. \
                 Send it again later."
            }
            Self::ServerBusy => {
                "Earlier requests still run although their connections were closed. This one was not run. Send it again later."
            }
            Self::StoreUnavailable => "Whether this request was made before cannot be found out now. It was not run.",
            Self::StoreFull => "There is no room to remember this request. It was not run.",
            Self::TooManyKeys => {
                "As many requests of this caller are remembered as may be. This one was not run. Send it again later."
            }
        };
        Cow::Borrowed(text)
    }
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::Full => Self::StoreFull,
            StoreErrorKind::TooManyKeys => Self::TooManyKeys,
            // Of a claim, only the body that is kept with it can be large.
            StoreErrorKind::TooLarge => Self::BodyTooLarge(None),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One of each. The compiler asks for the next one here.
    fn all() -> Vec<Refusal> {
        use Refusal::*;
        let after = |refusal: &Refusal| {
            Some(match refusal {
                KeyMissing => KeyInvalid(KeyError::Empty),
                KeyInvalid(_) => ScopeMissing,
                ScopeMissing => ScopeInvalid(KeyError::Repeated),
                ScopeInvalid(_) => ExtensionMissing("User"),
                ExtensionMissing(_) => BodyInvalid("The body is not JSON.".into()),
                BodyInvalid(_) => BodyIncomplete,
                BodyIncomplete => BodyTimeout,
                BodyTimeout => BodyTooLarge(Some(1024)),
                BodyTooLarge(_) => KeyReused,
                KeyReused => OtherCaller,
                OtherCaller => RecordIncompatible,
                RecordIncompatible => RequestInProgress(Duration::ZERO),
                RequestInProgress(_) => DuplicateRequest,
                DuplicateRequest => ResponseNotRetained,
                ResponseNotRetained => OutcomeUnknown,
                OutcomeUnknown => HandlerFailed,
                HandlerFailed => RolledBack,
                RolledBack => CommitUnknown,
                CommitUnknown => TokenMissing,
                TokenMissing => TokenUsed,
                TokenUsed => TokenInvalid,
                TokenInvalid => TooManyUnfinished,
                TooManyUnfinished => TooManyKeys,
                TooManyKeys => ServerBusy,
                ServerBusy => StoreUnavailable,
                StoreUnavailable => StoreFull,
                StoreFull => return None,
            })
        };
        std::iter::successors(Some(KeyMissing), after).collect()
    }

    #[test]
    fn each_name_is_that_of_its_variant_and_explained() {
        let guide = include_str!("../../docs/refusals.md");
        let explained: Vec<_> = guide.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        let names: Vec<_> = all().iter().map(Refusal::name).collect();
        for refusal in all() {
            let variant = format!("{refusal:?}");
            let variant = variant.split('(').next().unwrap();
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
        let guide = include_str!("../../docs/refusals.md");
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
