//! What a refusal says: to the client, and to the operator of the service.

use std::borrow::Cow;

use super::Refusal;

impl Refusal {
    /// Returns a short text that is the same for every refusal of this name.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self {
            Self::KeyMissing => "The idempotency key is missing",
            Self::KeyInvalid { .. } => "The idempotency key is invalid",
            Self::ScopeMissing => "The scope of the idempotency key is missing",
            Self::ScopeInvalid { .. } => "The scope of the idempotency key is invalid",
            Self::ExtensionMissing { .. } => "The service is not set up correctly",
            Self::BodyInvalid { .. } => "The request body is invalid",
            Self::BodyIncomplete => "The request body is incomplete",
            Self::BodyTimeout => "The request body stood still",
            Self::BodyTooLarge { .. } => "The request body is too large",
            Self::KeyReused => "The idempotency key was used for another request",
            Self::OtherCaller => "The idempotency key was used by another caller",
            Self::RecordIncompatible => "The record of the idempotency key cannot be compared",
            Self::RequestInProgress { .. } => "A request with this idempotency key is in progress",
            Self::DuplicateRequest => "The request was made before",
            Self::ResponseNotRetained => "The answer to this request was not retained",
            Self::AnswerUnreadable => "The answer to this request cannot be read",
            Self::OutcomeUnknown => "The outcome of this request is unknown",
            Self::HandlerFailed => "The handler of this request failed",
            Self::RolledBack => "The request was rolled back",
            Self::CommitUnknown => "Whether the request was committed is unknown",
            Self::TokenMissing => "The token is missing",
            Self::TokenUsed => "The token was used before",
            Self::TokenInvalid => "The token is invalid",
            Self::TooManyUnfinished => "Too many operations are unfinished",
            Self::ServerBusy => "The server has too many unfinished operations",
            Self::NotLogged => "The request cannot be logged",
            Self::ReplayNotDecided => "The answer to this request cannot be released now",
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
            Self::KeyInvalid { error } => return format!("{error}.").into(),
            Self::ScopeInvalid { error } => return format!("{}.", error.told_of("scope")).into(),
            Self::ScopeMissing => "The request lacks what says whose idempotency key it is.",
            Self::ExtensionMissing { .. } => "The service cannot tell whose idempotency key it is. Nothing was done.",
            Self::BodyInvalid { detail } => return detail.clone(),
            Self::BodyIncomplete => "The request body ended early. Nothing was done.",
            Self::BodyTimeout => "The rest of the request body did not come in time. Nothing was done.",
            Self::BodyTooLarge { limit: None } => "The request body is too long. Nothing was done.",
            Self::BodyTooLarge { limit: Some(limit) } => {
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
            Self::RequestInProgress { .. } => {
                "The first request with this key has not ended. Send the same request again later."
            }
            Self::DuplicateRequest => "The same request was made before. It was not run again.",
            Self::ResponseNotRetained => {
                "The request was run before; its answer cannot be sent again. It was not run again."
            }
            Self::AnswerUnreadable => {
                "The request was run before; its answer is kept, and this server cannot read it now. It was not run again."
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
            Self::NotLogged => "This request cannot be put on record now. It was not run. Send it again later.",
            Self::ReplayNotDecided => {
                "This request was made before, and its answer is kept. Whether it may be sent again could not be decided now. Send it \
                 again later."
            }
            Self::StoreUnavailable => "Whether this request was made before cannot be found out now. It was not run.",
            Self::StoreFull => "There is no room to remember this request. It was not run.",
            Self::TooManyKeys => {
                "As many requests of this caller are remembered as may be. This one was not run. Send it again later."
            }
        };
        Cow::Borrowed(text)
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
            Self::AnswerUnreadable => {
                "the error of the sealed store names the key that the answer is sealed with: `SealingKeys::accept` it; an \
                 answer that was changed or moved in the store stays unreadable"
            }
            Self::OutcomeUnknown => "the record stays so until it is reconciled: see `Reconciler`",
            Self::StoreFull => "raise the store's capacity, or keep records for less long",
            _ => return None,
        })
    }
}
