//! What the layer says itself: refusals, and the fields that it adds to answers.

use std::{borrow::Cow, future::Future, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, Response, request::Parts};

use super::IdempotencyLayer;
use crate::exchange::RefusedRequest;

impl IdempotencyLayer {
    /// Asks whether a request is from whom it says it is, before anything is claimed for it: one step that sees the
    /// head and the raw bytes of the body, and may refuse in the sender's own word. Default: nothing is asked.
    ///
    /// This is the place for signatures of callbacks and webhooks. In front of the claim, nobody can have an identifier
    /// remembered as done before its sender uses it; and a redelivery, which is signed anew, is verified like the first
    /// delivery. `Err` is sent as it is, reported as [`Event::Unverified`](crate::Event::Unverified), and leaves no
    /// record.
    ///
    /// Every request of the protected [methods](Self::methods) is verified, one that is let through without a key too
    /// ([`optional`](Self::optional)). A key in the head is looked for before, so a request without one is refused as
    /// such. A layer that is switched [off](Self::disabled) still verifies. The head is cloned for the closure. If the
    /// client leaves meanwhile, the step is dropped, and nothing has happened. A panic reaches the caller of the
    /// service, and nothing is claimed.
    ///
    /// **What the layer leaves out is not verified**, so a forged request reaches its handler: requests of other methods,
    /// and those that [`skip_routes`](Self::skip_routes) and [`skip_if`](Self::skip_if) name.
    ///
    /// ```
    /// use axum::{Router, body::{Body, Bytes}, http::{Request, Response, StatusCode, request::Parts}, routing::post};
    /// use tower::ServiceExt;
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, key};
    ///
    /// /// Stands for the sender's own rule: here, that the header repeats the last word of the body.
    /// async fn verify(head: Parts, body: Bytes) -> Result<(), Response<Bytes>> {
    ///     match head.headers.get("x-signature") {
    ///         Some(signature) if body.ends_with(signature.as_bytes()) => Ok(()),
    ///         _ => {
    ///             let mut refused = Response::new(Bytes::from_static(b"fail"));
    ///             *refused.status_mut() = StatusCode::UNAUTHORIZED;
    ///             Err(refused)
    ///         }
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let layer = IdempotencyLayer::new(MemoryStore::new()).key(key::query("id")).unscoped().verify(verify);
    /// let app: Router = Router::new().route("/notify", post(|| async { "success" }).layer(layer));
    /// let deliver = |signature: &str| {
    ///     let request = Request::post("/notify?id=7").header("X-Signature", signature);
    ///     app.clone().oneshot(request.body(Body::from("paid")).unwrap())
    /// };
    /// assert_eq!(deliver("forged").await.unwrap().status(), StatusCode::UNAUTHORIZED);
    /// assert_eq!(deliver("paid").await.unwrap().status(), StatusCode::OK);
    /// # }
    /// ```
    pub fn verify<F>(self, verify: impl Fn(Parts, Bytes) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), Response<Bytes>>> + Send + 'static,
    {
        self.with(|exchange| exchange.verify = Some(Arc::new(move |head, body| Box::pin(verify(head, body)))))
    }

    /// Sets the header that marks a replay, with the value `true`. Default: `Idempotent-Replayed`.
    ///
    /// A first answer never has it, nor the default one: if the handler passes on the answer of another service that
    /// replayed it, the mark is taken off.
    pub fn replay_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.replay_header = Some(name))
    }

    /// Leaves out the header that marks a replay: a client cannot tell it from the first answer. An `Idempotent-Replayed`
    /// that the handler passes on is taken off all the same.
    pub fn without_replay_header(self) -> Self {
        self.with(|exchange| exchange.replay_header = None)
    }

    /// Sets the header that says when the first request ended, on its kept answer and on every replay. Default: none.
    ///
    /// An answer that could not be recorded does not have it, nor the one of [`expires_header`](Self::expires_header).
    /// The value is a date as in `Date` (RFC 9110, section 5.6.7), by the clock of the process that ran the request.
    pub fn completed_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.completed_header = Some(name))
    }

    /// Sets the header that says until when an answer is kept, on the answer itself and on every replay. Default: none.
    ///
    /// From then on the same key runs again. The value is a date as in `Date` (RFC 9110, section 5.6.7), by the clock
    /// of the process that ran the request; the store counts by its own clock, so leave a margin of a few seconds. A
    /// record that was settled by hand ([`Payload`](crate::Payload)) has no such header.
    pub fn expires_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.expires_header = Some(name))
    }

    /// Adds the fields that SDKs obey before they look at the status, `Stripe-Should-Retry` and `X-Should-Retry`:
    /// `true` on a refusal that passes, `false` on one that does not, on a failure that was kept and on its replays. Default:
    /// off.
    ///
    /// Stripe's own SDKs read the first, those that Stainless generates (such as OpenAI's) the second. Without them,
    /// such a client repeats every 409 several times, whether or not it can ever pass. A field that the answer has
    /// already is left alone.
    pub fn sdk_hints(self) -> Self {
        self.with(|exchange| exchange.sdk_hints = true)
    }

    /// Sets where the application explains refusals: the `type` of a problem is this, a `#`, and the refusal's name.
    pub fn problem_type_base(self, uri: impl Into<Cow<'static, str>>) -> Self {
        self.with(|exchange| exchange.problem_type_base = uri.into())
    }

    /// Adds `Link: <…>; rel="describedby"` with the `type` of the problem to each problem document, for clients that do
    /// not read bodies (draft-ietf-httpapi-idempotency-key-header-07, section 2.7). Default: off.
    pub fn problem_link(self) -> Self {
        self.with(|exchange| exchange.problem_link = true)
    }

    /// Sets the member `instance` of each problem document, which names this occurrence (RFC 9457, section 3.1.5).
    /// Default: none.
    ///
    /// ```
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore};
    ///
    /// // The id that a layer further out gave to the request, and that is in the logs.
    /// let layer = IdempotencyLayer::new(MemoryStore::new()).problem_instance(|head| {
    ///     let id = head.headers.get("x-request-id")?.to_str().ok()?;
    ///     Some(format!("urn:request:{id}"))
    /// });
    /// # drop(layer);
    /// ```
    pub fn problem_instance(self, instance: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> Self {
        self.with(|exchange| exchange.problem_instance = Some(Arc::new(instance)))
    }

    /// Makes the answer of each refusal, in place of the layer's problem documents.
    ///
    /// The closure sees the refusal, the head of the request, and the key if there is one;
    /// [`document`](RefusedRequest::document) is the way back. A refusal that passes gets a `Retry-After` if it has none.
    ///
    /// ```
    /// use http::HeaderValue;
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, Refusal};
    ///
    /// let layer = IdempotencyLayer::new(MemoryStore::new()).render(|refused| {
    ///     let mut response = refused.document();
    ///     if let (Refusal::KeyReused, Some(key)) = (refused.refusal(), refused.key())
    ///         && let Ok(route) = HeaderValue::from_str(key.route())
    ///     {
    ///         response.headers_mut().insert("x-operation", route);
    ///     }
    ///     response
    /// });
    /// # drop(layer);
    /// ```
    pub fn render(self, render: impl Fn(&RefusedRequest<'_>) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        self.with(|exchange| exchange.render = Some(Arc::new(render)))
    }
}
