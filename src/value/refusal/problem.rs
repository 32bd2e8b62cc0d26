//! What a problem document says of a refusal in members of fixed values.

use http::StatusCode;

use super::Refusal;

impl Refusal {
    /// Returns the name, as in the fragment of the problem's `type`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyInvalid { .. } => "key-invalid",
            Self::ScopeMissing => "scope-missing",
            Self::ScopeInvalid { .. } => "scope-invalid",
            Self::ExtensionMissing { .. } => "extension-missing",
            Self::BodyInvalid { .. } => "body-invalid",
            Self::BodyIncomplete => "body-incomplete",
            Self::BodyTimeout => "body-timeout",
            Self::BodyTooLarge { .. } => "body-too-large",
            Self::KeyReused => "key-reused",
            Self::OtherCaller => "other-caller",
            Self::RecordIncompatible => "record-incompatible",
            Self::RequestInProgress { .. } => "request-in-progress",
            Self::DuplicateRequest => "duplicate-request",
            Self::ResponseNotRetained => "response-not-retained",
            Self::AnswerUnreadable => "answer-unreadable",
            Self::ReplayNotDecided => "replay-not-decided",
            Self::OutcomeUnknown => "outcome-unknown",
            Self::HandlerFailed => "handler-failed",
            Self::RolledBack => "rolled-back",
            Self::CommitUnknown => "commit-unknown",
            Self::TokenMissing => "token-missing",
            Self::TokenUsed => "token-used",
            Self::TokenInvalid => "token-invalid",
            Self::TooManyUnfinished => "too-many-unfinished",
            Self::ServerBusy => "server-busy",
            Self::NotLogged => "not-logged",
            Self::StoreUnavailable => "store-unavailable",
            Self::StoreFull => "store-full",
            Self::TooManyKeys => "too-many-keys",
        }
    }

    /// Returns the status of the answer.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::KeyMissing
            | Self::KeyInvalid { .. }
            | Self::ScopeMissing
            | Self::ScopeInvalid { .. }
            | Self::BodyInvalid { .. }
            | Self::BodyIncomplete
            | Self::TokenMissing => StatusCode::BAD_REQUEST,
            Self::TokenInvalid => StatusCode::FORBIDDEN,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::KeyReused | Self::OtherCaller => StatusCode::UNPROCESSABLE_ENTITY,
            Self::RequestInProgress { .. }
            | Self::DuplicateRequest
            | Self::ResponseNotRetained
            | Self::AnswerUnreadable
            | Self::OutcomeUnknown
            | Self::RecordIncompatible
            | Self::TokenUsed => StatusCode::CONFLICT,
            Self::TooManyUnfinished | Self::TooManyKeys => StatusCode::TOO_MANY_REQUESTS,
            Self::ExtensionMissing { .. } | Self::HandlerFailed | Self::RolledBack => StatusCode::INTERNAL_SERVER_ERROR,
            Self::NotLogged
            | Self::StoreUnavailable
            | Self::StoreFull
            | Self::CommitUnknown
            | Self::ServerBusy
            | Self::ReplayNotDecided => StatusCode::SERVICE_UNAVAILABLE,
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
            | Self::AnswerUnreadable
            | Self::RequestInProgress { .. }
            | Self::ServerBusy
            | Self::TooManyKeys
            | Self::TooManyUnfinished
            | Self::RolledBack
            | Self::CommitUnknown
            | Self::NotLogged
            | Self::ReplayNotDecided
            | Self::StoreUnavailable
            | Self::StoreFull => true,
            Self::KeyMissing
            | Self::KeyInvalid { .. }
            | Self::ScopeMissing
            | Self::ScopeInvalid { .. }
            | Self::ExtensionMissing { .. }
            | Self::BodyInvalid { .. }
            | Self::BodyTooLarge { .. }
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
}
