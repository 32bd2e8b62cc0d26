use std::{borrow::Cow, fmt, time::Duration};

use http::StatusCode;

use super::{KeyError, Mismatch};

/// Why a request was not run.
///
/// Each refusal has a name ([`name`](Self::name)), which is the fragment of the problem's `type` (RFC 9457), and a
/// status. 400, 409 and 422 are those of draft-ietf-httpapi-idempotency-key-header-07, section 2.7.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The request has no key, and the route asks for one.
    KeyMissing,
    /// The request's key is malformed.
    KeyInvalid(KeyError),
    /// The request does not say whose key it is, and the route asks for it.
    ScopeMissing,
    /// No layer further out has put the extension of this type into the request, and the scope is taken from it.
    ExtensionMissing(&'static str),
    /// The body is not in the form that the fingerprint asks for.
    BodyInvalid(Cow<'static, str>),
    /// The body did not arrive whole.
    BodyIncomplete,
    /// The body is longer than this many bytes, or than a layer further out allows.
    BodyTooLarge(Option<usize>),
    /// The key was used for another request.
    KeyReused(Mismatch),
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
    /// The handler answered, and what it did in its transaction was rolled back all the same.
    RolledBack,
    /// The handler answered, and whether its transaction was committed is not known.
    CommitUnknown,
    /// The request has no token, and the route asks for one.
    TokenMissing,
    /// The token was used before.
    TokenUsed,
    /// The token was never issued, has expired, or is for another purpose or principal.
    TokenInvalid,
    /// The store does not answer.
    StoreUnavailable,
    /// The store has no room for another record.
    StoreFull,
}

impl Refusal {
    /// The name, as in the fragment of the problem's `type`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyInvalid(_) => "key-invalid",
            Self::ScopeMissing => "scope-missing",
            Self::ExtensionMissing(_) => "extension-missing",
            Self::BodyInvalid(_) => "body-invalid",
            Self::BodyIncomplete => "body-incomplete",
            Self::BodyTooLarge(_) => "body-too-large",
            Self::KeyReused(_) => "key-reused",
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
            Self::StoreUnavailable => "store-unavailable",
            Self::StoreFull => "store-full",
        }
    }

    /// Returns whether the same request, sent again later, can have another outcome: the member `retryable` of the problem.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::BodyIncomplete
            | Self::RequestInProgress(_)
            | Self::RolledBack
            | Self::CommitUnknown
            | Self::StoreUnavailable
            | Self::StoreFull => true,
            Self::KeyMissing
            | Self::KeyInvalid(_)
            | Self::ScopeMissing
            | Self::ExtensionMissing(_)
            | Self::BodyInvalid(_)
            | Self::BodyTooLarge(_)
            | Self::KeyReused(_)
            | Self::DuplicateRequest
            | Self::ResponseNotRetained
            | Self::OutcomeUnknown
            | Self::HandlerFailed
            | Self::TokenMissing
            | Self::TokenUsed
            | Self::TokenInvalid => false,
        }
    }

    /// Returns what whoever runs the service can do about it, for logs. It is no text for clients.
    #[must_use]
    pub fn advice(&self) -> Option<&'static str> {
        Some(match self {
            Self::ScopeMissing => {
                "if every caller has a scope, the layer that finds it (such as the authentication) has to be outside this \
                 one, and the extension has to be of the type that `scope::extension` names"
            }
            Self::KeyReused(Mismatch::Caller) => {
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

    /// The status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::KeyMissing
            | Self::KeyInvalid(_)
            | Self::ScopeMissing
            | Self::BodyInvalid(_)
            | Self::BodyIncomplete
            | Self::TokenMissing => StatusCode::BAD_REQUEST,
            Self::TokenInvalid => StatusCode::FORBIDDEN,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::KeyReused(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RequestInProgress(_)
            | Self::DuplicateRequest
            | Self::ResponseNotRetained
            | Self::OutcomeUnknown
            | Self::TokenUsed => StatusCode::CONFLICT,
            Self::ExtensionMissing(_) | Self::HandlerFailed | Self::RolledBack => StatusCode::INTERNAL_SERVER_ERROR,
            Self::StoreUnavailable | Self::StoreFull | Self::CommitUnknown => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// A short text that is the same for every refusal of this name.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::KeyMissing => "The idempotency key is missing",
            Self::KeyInvalid(_) => "The idempotency key is invalid",
            Self::ScopeMissing => "The scope of the idempotency key is missing",
            Self::ExtensionMissing(_) => "The service is not set up correctly",
            Self::BodyInvalid(_) => "The request body is invalid",
            Self::BodyIncomplete => "The request body is incomplete",
            Self::BodyTooLarge(_) => "The request body is too large",
            Self::KeyReused(_) => "The idempotency key was used for another request",
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
            Self::StoreUnavailable => "The idempotency store is unavailable",
            Self::StoreFull => "The idempotency store is full",
        }
    }

    /// What the client can do about it.
    #[must_use]
    pub fn detail(&self) -> Cow<'static, str> {
        let text = match self {
            Self::KeyMissing => "This operation must be sent with an idempotency key.",
            Self::KeyInvalid(error) => return format!("{error}.").into(),
            Self::ScopeMissing => "The request does not say whose idempotency key it is.",
            Self::ExtensionMissing(_) => "The service cannot tell whose idempotency key it is. Nothing was done.",
            Self::BodyInvalid(what) => return what.clone(),
            Self::BodyIncomplete => "The request body ended early. Nothing was done.",
            Self::BodyTooLarge(None) => "The request body is too long. Nothing was done.",
            Self::BodyTooLarge(Some(limit)) => {
                return format!("The request body is longer than {limit} bytes. Nothing was done.").into();
            }
            Self::KeyReused(Mismatch::Fingerprint) => {
                "The key belongs to a request with other content. Send a new operation with a new key."
            }
            Self::KeyReused(Mismatch::Caller) => {
                "The key belongs to a request with other credentials. Send a new operation with a new key."
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
            Self::StoreUnavailable => "Whether this request was made before cannot be found out now. It was not run.",
            Self::StoreFull => "There is no room to remember this request. It was not run.",
        };
        Cow::Borrowed(text)
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
                ScopeMissing => ExtensionMissing("User"),
                ExtensionMissing(_) => BodyInvalid("The body is not JSON.".into()),
                BodyInvalid(_) => BodyIncomplete,
                BodyIncomplete => BodyTooLarge(Some(1024)),
                BodyTooLarge(_) => KeyReused(Mismatch::Fingerprint),
                KeyReused(_) => RequestInProgress(Duration::ZERO),
                RequestInProgress(_) => DuplicateRequest,
                DuplicateRequest => ResponseNotRetained,
                ResponseNotRetained => OutcomeUnknown,
                OutcomeUnknown => HandlerFailed,
                HandlerFailed => RolledBack,
                RolledBack => CommitUnknown,
                CommitUnknown => TokenMissing,
                TokenMissing => TokenUsed,
                TokenUsed => TokenInvalid,
                TokenInvalid => StoreUnavailable,
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
        let mut all = all();
        all.push(Refusal::KeyReused(Mismatch::Caller));
        for refusal in all {
            assert!(!refusal.detail().contains("`."), "{refusal}");
        }
    }
}
