//! Refusals as statuses, with details that say what is the matter (`google.rpc.ErrorInfo`) and when to try again
//! (`google.rpc.RetryInfo`).

use std::{borrow::Cow, collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response,
    header::{CONTENT_TYPE, RETRY_AFTER},
};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower_idempotency::{Refusal, service::RefusedRequest};

use crate::{
    call::{Call, GRPC_ACCEPT_ENCODING, Trouble},
    codes::counts_as,
    request::KNOWN_ENCODINGS,
};

/// The `domain` of each `ErrorInfo`.
const DOMAIN: &str = "tower-idempotency";

/// How long a client waits before its next try, by its retry policy.
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Why a call does not run.
#[derive(Clone)]
pub(crate) struct Refused {
    code: Code,
    reason: &'static str,
    is_retryable: bool,
    text: Cow<'static, str>,
}

/// Returns the answer to a refusal. The service adds when to try again.
pub(crate) fn render(refused: &RefusedRequest<'_>) -> Response<Bytes> {
    let refusal = refused.refusal();
    let call = refused.head().extensions.get::<Arc<Call>>();
    // Whatever is wrong with its message, the core only knows that its body broke.
    let trouble = call.and_then(|call| call.trouble()).filter(|_| matches!(refusal, Refusal::BodyIncomplete));
    let refused = match trouble {
        Some(trouble) if trouble != Trouble::Torn => Refused::of_trouble(trouble),
        _ => Refused {
            code: code_of(refusal),
            reason: refusal.name(),
            is_retryable: refusal.is_retryable(),
            text: refused.detail().into(),
        },
    };
    let mut response = refused.answer(None).map(|()| Bytes::new());
    // The core sees how it counts.
    *response.status_mut() = if trouble.is_some() { counts_as(refused.code) } else { refusal.status() };
    if trouble == Some(Trouble::UnknownEncoding) {
        response.headers_mut().insert(GRPC_ACCEPT_ENCODING, HeaderValue::from_static(KNOWN_ENCODINGS));
    }
    response.extensions_mut().insert(refused);
    response
}

impl Refused {
    fn of_trouble(trouble: Trouble) -> Self {
        let (code, reason, text) = match trouble {
            Trouble::Stream => (
                Code::Unimplemented,
                "client-stream",
                "The call sends a stream of messages, or leaves its request open, and has an idempotency key. Such a call \
                 cannot be protected. It was not run.",
            ),
            Trouble::TooLarge => {
                (Code::ResourceExhausted, "body-too-large", "The message is longer than the limit. It was not run.")
            }
            Trouble::UnknownEncoding => (
                Code::Unimplemented,
                "encoding-unknown",
                "The message is compressed in a way that is not known here. It was not run.",
            ),
            Trouble::Web => (
                Code::Unimplemented,
                "grpc-web",
                "The call is one of gRPC-Web and has an idempotency key. The server has to translate it before it can be \
                 protected. It was not run.",
            ),
            Trouble::Malformed | Trouble::Torn => {
                (Code::InvalidArgument, "body-invalid", "The message cannot be decompressed. It was not run.")
            }
        };
        Self { code, reason, is_retryable: false, text: Cow::Borrowed(text) }
    }

    /// Returns what a client receives whose deadline has passed.
    pub(crate) fn by_deadline() -> Self {
        Self {
            code: Code::DeadlineExceeded,
            reason: "deadline-exceeded",
            is_retryable: true,
            text: Cow::Borrowed(
                "The deadline of the call has passed. What has begun goes on: the same call, sent again, receives its \
                 answer.",
            ),
        }
    }

    /// Returns the answer of a head only.
    pub(crate) fn answer<B: Default>(&self, retry_after: Option<Duration>) -> Response<B> {
        let retryable = if self.is_retryable { "true" } else { "false" };
        let metadata = HashMap::from([("retryable".to_owned(), retryable.to_owned())]);
        let mut details = ErrorDetails::with_error_info(self.reason, DOMAIN, metadata);
        if retry_after.is_some() {
            details.set_retry_info(retry_after);
        }
        let status = Status::with_error_details(self.code, self.text.clone(), details);
        let mut response = Response::new(B::default());
        let headers = response.headers_mut();
        // Nothing of it is metadata that could be malformed.
        let _ = status.add_header(headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        if let Some(after) = retry_after {
            headers.insert(PUSHBACK, HeaderValue::from(u64::try_from(after.as_millis()).unwrap_or(u64::MAX)));
        }
        response
    }

    /// Adds when to try again, which the core has written into the head.
    pub(crate) fn add_retry_info(&self, headers: &mut HeaderMap) {
        let seconds = headers.remove(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(seconds) = seconds {
            let answer = self.answer::<()>(Some(Duration::from_secs(seconds)));
            for (name, value) in answer.headers() {
                headers.insert(name, value.clone());
            }
        }
    }
}

/// Returns the code of a refusal.
fn code_of(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::KeyMissing
        | Refusal::KeyInvalid { .. }
        | Refusal::ScopeMissing
        | Refusal::ScopeInvalid { .. }
        | Refusal::BodyInvalid { .. }
        | Refusal::TokenMissing => Code::InvalidArgument,
        Refusal::OtherCaller | Refusal::TokenInvalid => Code::PermissionDenied,
        // Nothing changes by itself: the client, or an operator, has to do something first.
        Refusal::KeyReused | Refusal::OutcomeUnknown => Code::FailedPrecondition,
        Refusal::RequestInProgress { .. } | Refusal::RolledBack => Code::Aborted,
        Refusal::DuplicateRequest | Refusal::ResponseNotRetained | Refusal::TokenUsed => Code::AlreadyExists,
        Refusal::BodyTooLarge { .. } | Refusal::TooManyUnfinished | Refusal::TooManyKeys => Code::ResourceExhausted,
        Refusal::BodyIncomplete
        | Refusal::BodyTimeout
        | Refusal::RecordIncompatible
        | Refusal::ServerBusy
        | Refusal::StoreUnavailable
        | Refusal::StoreFull
        | Refusal::CommitUnknown => Code::Unavailable,
        Refusal::ExtensionMissing { .. } | Refusal::HandlerFailed => Code::Internal,
        _ if refusal.is_retryable() => Code::Unavailable,
        _ => Code::FailedPrecondition,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_guide_has_every_refusal() {
        let guide = include_str!("../../docs/grpc.md");
        let refusals = include_str!("../../docs/refusals.md").lines().filter_map(|line| line.strip_prefix("## "));
        // A token is in a header or a form of HTTP.
        for name in refusals.filter(|name| !name.starts_with("token-")) {
            assert!(guide.contains(&format!("`{name}`")), "docs/grpc.md does not have {name}");
        }
    }
}
