//! What the layer says itself: refusals, and the fields that it adds to answers.

use std::{borrow::Cow, future::Future, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, Response, request::Parts};

use super::TokenLayer;
use crate::exchange::RefusedRequest;

impl TokenLayer {
    /// Asks for more than the token before anything is claimed, such as the answer to a riddle: one step that sees the head
    /// and the raw bytes of the body, and may refuse in a word of its own. A refusal does not spend the token. See
    /// [`IdempotencyLayer::verify`](crate::IdempotencyLayer::verify).
    ///
    /// The body is read first then, wherever the token is. A layer that is switched [off](Self::disabled) still verifies; what
    /// it leaves out otherwise (other methods, [`skip_if`](Self::skip_if) and its kind) is not verified.
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

    /// Leaves out the header that marks a replay: a client cannot tell it from the first answer.
    pub fn without_replay_header(self) -> Self {
        self.with(|exchange| exchange.replay_header = None)
    }

    /// Sets the header that says when the first request ended; see
    /// [`IdempotencyLayer::completed_header`](crate::IdempotencyLayer::completed_header).
    pub fn completed_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.completed_header = Some(name))
    }

    /// Sets the header that says until when the token is known as used; see
    /// [`IdempotencyLayer::expires_header`](crate::IdempotencyLayer::expires_header).
    pub fn expires_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.expires_header = Some(name))
    }

    /// Adds the fields that SDKs obey before they look at the status; see
    /// [`IdempotencyLayer::sdk_hints`](crate::IdempotencyLayer::sdk_hints).
    pub fn sdk_hints(self) -> Self {
        self.with(|exchange| exchange.sdk_hints = true)
    }

    /// Sets where the application explains refusals: the `type` of a problem is this, a `#`, and the refusal's name.
    pub fn problem_type_base(self, uri: impl Into<Cow<'static, str>>) -> Self {
        self.with(|exchange| exchange.problem_type_base = uri.into())
    }

    /// Adds `Link: <…>; rel="describedby"` with the `type` of the problem to each problem document. Default: off.
    pub fn problem_link(self) -> Self {
        self.with(|exchange| exchange.problem_link = true)
    }

    /// Sets the member `instance` of each problem document, which names this occurrence; see
    /// [`IdempotencyLayer::problem_instance`](crate::IdempotencyLayer::problem_instance).
    pub fn problem_instance(self, instance: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|exchange| exchange.problem_instance = Some(Arc::new(instance)))
    }

    /// Makes the answer of each refusal, such as a page, in place of the layer's problem documents.
    ///
    /// The closure sees the refusal, the head of the request, and the key if there is one;
    /// [`document`](RefusedRequest::document) is the way back. A refusal that passes gets a `Retry-After` if it has none.
    pub fn render(self, render: impl Fn(&RefusedRequest<'_>) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        self.with(|exchange| exchange.render = Some(Arc::new(render)))
    }
}
