//! Refusals, and the header fields that the layer adds to answers.

use std::{borrow::Cow, future::Future, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, Response, request::Parts};

use crate::{http::RefusedRequest, layer::TokenLayer};

impl TokenLayer {
    /// Verifies more than the token before anything is claimed, such as a captcha. The closure sees the head and the
    /// raw bytes of the body, and may refuse with an answer of its own. A refusal does not spend the token. See
    /// [`IdempotencyLayer::verify`](crate::IdempotencyLayer::verify).
    ///
    /// The body is then read first, wherever the token is. A layer that is switched [off](Self::disabled) still
    /// verifies; other requests that it leaves out (other methods, [`skip_if`](Self::skip_if),
    /// [`skip_routes`](Self::skip_routes)) are not verified.
    pub fn verify<F>(self, verify: impl Fn(Parts, Bytes) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), Response<Bytes>>> + Send + 'static,
    {
        self.with(|exchange| exchange.verify = Some(Arc::new(move |head, body| Box::pin(verify(head, body)))))
    }

    /// Sets the header that marks a replay, with the value `true`. Default: `Idempotent-Replayed`.
    pub fn replay_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.replay_header = Some(name))
    }

    /// Leaves out the header that marks a replay, so that a client cannot distinguish a replay from the first answer.
    pub fn without_replay_header(self) -> Self {
        self.with(|exchange| exchange.replay_header = None)
    }

    /// Sets the header that states when the first request ended; see
    /// [`IdempotencyLayer::completed_header`](crate::IdempotencyLayer::completed_header).
    pub fn completed_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.completed_header = Some(name))
    }

    /// Sets the header that states until when the token is known as used; see
    /// [`IdempotencyLayer::expires_header`](crate::IdempotencyLayer::expires_header).
    pub fn expires_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.expires_header = Some(name))
    }

    /// Adds the header fields that SDKs follow before they look at the status; see
    /// [`IdempotencyLayer::sdk_hints`](crate::IdempotencyLayer::sdk_hints).
    pub fn sdk_hints(self) -> Self {
        self.with(|exchange| exchange.sdk_hints = true)
    }

    /// Sets the page where the application explains refusals: the `type` of a problem is this URI, a `#`, and the
    /// refusal's name.
    pub fn problem_type_base(self, uri: impl Into<Cow<'static, str>>) -> Self {
        self.with(|exchange| exchange.problem_type_base = uri.into())
    }

    /// Adds `Link: <…>; rel="describedby"` with the `type` of the problem to each problem document. Default: off.
    pub fn problem_link(self) -> Self {
        self.with(|exchange| exchange.problem_link = true)
    }

    /// Sets the member `instance` of each problem document, which identifies this occurrence; see
    /// [`IdempotencyLayer::problem_instance`](crate::IdempotencyLayer::problem_instance).
    pub fn problem_instance(self, instance: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|exchange| exchange.problem_instance = Some(Arc::new(instance)))
    }

    /// Sets the closure that creates the answer to each refusal, such as a page, in place of the layer's problem
    /// documents.
    ///
    /// The closure sees the refusal, the head of the request, and the key if there is one;
    /// [`document`](RefusedRequest::document) returns the layer's own document. A temporary refusal gets a
    /// `Retry-After` if its answer has none.
    pub fn render(self, render: impl Fn(&RefusedRequest<'_>) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        self.with(|exchange| exchange.render = Some(Arc::new(render)))
    }
}
