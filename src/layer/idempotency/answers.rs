//! Refusals, and the header fields that the layer adds to answers.

use std::{borrow::Cow, future::Future, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, Response, request::Parts};

use crate::{http::RefusedRequest, layer::IdempotencyLayer};

impl IdempotencyLayer {
    /// Verifies that a request is from the sender that it names, before anything is claimed for it. The closure sees
    /// the head and the raw bytes of the body, and may refuse with an answer in the sender's own format. Default: no
    /// verification.
    ///
    /// This is the place for signatures of callbacks and webhooks. Verification comes before the claim, so nobody can
    /// have an identifier recorded as done before its sender uses it. A redelivery, which is signed anew, is verified
    /// like the first delivery. An `Err` is sent as it is, is reported as
    /// [`Event::Unverified`](crate::Event::Unverified), and leaves no record.
    ///
    /// Every request of the protected [methods](Self::methods) is verified, also one that is let through without a key
    /// ([`optional`](Self::optional)). A key in the head is extracted before, so a request without one is refused as
    /// `key-missing`. A layer that is switched [off](Self::disabled) still verifies. The head is cloned for the
    /// closure. If the client disconnects meanwhile, the closure's future is dropped, and nothing has happened. A panic
    /// reaches the caller of the service, and nothing is claimed.
    ///
    /// **Requests that the layer leaves out are not verified**, so a forged one reaches its handler: requests of other
    /// methods, and those that [`skip_routes`](Self::skip_routes) and [`skip_if`](Self::skip_if) exclude.
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
    /// A first answer has neither this header nor the default one: if the handler passes on an answer that another
    /// service replayed, the layer removes the header.
    pub fn replay_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.replay_header = Some(name))
    }

    /// Leaves out the header that marks a replay, so that a client cannot distinguish a replay from the first answer.
    /// The layer still removes an `Idempotent-Replayed` that the handler passes on.
    pub fn without_replay_header(self) -> Self {
        self.with(|exchange| exchange.replay_header = None)
    }

    /// Sets the header that states when the first request ended, on its kept answer and on every replay. Default: none.
    ///
    /// An answer that could not be recorded has neither this header nor that of
    /// [`expires_header`](Self::expires_header). The value is a date as in `Date` (RFC 9110, section 5.6.7), by the
    /// clock of the process that ran the request.
    pub fn completed_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.completed_header = Some(name))
    }

    /// Sets the header that states until when an answer is kept, on the answer itself and on every replay. Default:
    /// none.
    ///
    /// From then on a request with the same key runs again. The value is a date as in `Date` (RFC 9110, section 5.6.7),
    /// by the clock of the process that ran the request; the store counts by its own clock, so leave a margin of a few
    /// seconds. A record that was settled by hand ([`Payload`](crate::Payload)) has no such header.
    pub fn expires_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.expires_header = Some(name))
    }

    /// Adds the header fields that SDKs follow before they look at the status, `Stripe-Should-Retry` and
    /// `X-Should-Retry`: `true` on a temporary refusal, `false` on any other refusal, on a kept failure and on its
    /// replays. Default: off.
    ///
    /// Stripe's own SDKs read the first, those that Stainless generates (such as OpenAI's) the second. Without these
    /// fields, such a client repeats every 409 several times, even if no repeat can succeed. A field that the answer
    /// already has is left unchanged.
    pub fn sdk_hints(self) -> Self {
        self.with(|exchange| exchange.sdk_hints = true)
    }

    /// Sets the page where the application explains refusals: the `type` of a problem is this URI, a `#`, and the
    /// refusal's name.
    pub fn problem_type_base(self, uri: impl Into<Cow<'static, str>>) -> Self {
        self.with(|exchange| exchange.problem_type_base = uri.into())
    }

    /// Adds `Link: <…>; rel="describedby"` with the `type` of the problem to each problem document, for clients that do
    /// not read bodies (draft-ietf-httpapi-idempotency-key-header-07, section 2.7). Default: off.
    pub fn problem_link(self) -> Self {
        self.with(|exchange| exchange.problem_link = true)
    }

    /// Sets the member `instance` of each problem document, which identifies this occurrence (RFC 9457, section 3.1.5).
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

    /// Sets the closure that creates the answer to each refusal, in place of the layer's problem documents.
    ///
    /// The closure sees the refusal, the head of the request, and the key if there is one;
    /// [`document`](RefusedRequest::document) returns the layer's own document. A temporary refusal gets a
    /// `Retry-After` if its answer has none.
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
