//! Requests that the layer leaves out, and bodies that it does not read.

use std::time::Duration;

use http::request::Parts;

use crate::layer::IdempotencyLayer;

impl IdempotencyLayer {
    /// Switches the layer off: every request reaches the inner service unprotected, at no cost. Default: `false`.
    ///
    /// [`verify`](Self::verify) still runs: a route whose duplicates may run must still refuse forgeries. If nothing is
    /// to be verified, leave out `verify` as well.
    ///
    /// With this setting, a configuration can decide whether a route is protected. The type of the service stays the
    /// same, so no `if` around `Router::layer` is needed. `tower::util::option_layer` cannot do this in front of an
    /// Axum router, since its two cases have response bodies of different types.
    ///
    /// If a handler takes an [`Operation`](crate::Operation), its route answers 500 while the layer is switched off;
    /// take an `Option<Operation>` instead. A handler that takes the layer's transaction (`Tx`) needs the layer.
    ///
    /// ```
    /// use axum::{Router, body::Body, http::Request, routing::post};
    /// use tower::ServiceExt;
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let switched_on = false; // from the configuration
    /// let idempotent = IdempotencyLayer::new(MemoryStore::new()).disabled(!switched_on);
    /// let app = Router::new().route("/orders", post(|| async { "ordered" }).layer(idempotent));
    ///
    /// // A request without a key is not refused.
    /// let response = app.oneshot(Request::post("/orders").body(Body::empty())?).await?;
    /// assert_eq!(response.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    pub fn disabled(self, disabled: bool) -> Self {
        self.with(|exchange| exchange.disabled = disabled)
    }

    /// Leaves these routes out: their requests reach the inner service unprotected.
    ///
    /// A route is named as Axum matched it, with the prefix of every router that it is nested in, such as
    /// `/v1/orders/{id}`. If there is no matched route, its name is the request's path. This is for a layer that is put
    /// around a whole router. Several calls add up.
    ///
    /// ```
    /// use axum::{Router, routing::post};
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, key};
    ///
    /// let idempotent = IdempotencyLayer::new(MemoryStore::new());
    /// let app: Router = Router::new()
    ///     .route("/orders", post(|| async { "ordered" }))
    ///     .route("/login", post(|| async { "welcome" }))
    ///     // This route has a layer of its own, which is inside the one around the router.
    ///     .route("/payments/{id}", post(|| async { "paid" }).layer(idempotent.clone().key(key::path("id"))))
    ///     .layer(idempotent.skip_routes(["/login", "/payments/{id}"]));
    /// # drop(app);
    /// ```
    pub fn skip_routes<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        self.with(|exchange| names.into_iter().for_each(|name| exchange.exceptions.add_route(name.into())))
    }

    /// Leaves requests out: those whose head fulfils `condition` reach the inner service unprotected.
    ///
    /// The condition is checked only for requests of the protected [methods](Self::methods). Several calls add up: a
    /// request is left out if one of the conditions holds.
    ///
    /// ```
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore};
    ///
    /// let layer = IdempotencyLayer::new(MemoryStore::new())
    ///     .skip_if(|parts| parts.uri.path().starts_with("/internal/"));
    /// # drop(layer);
    /// ```
    pub fn skip_if(self, condition: impl Fn(&Parts) -> bool + Send + Sync + 'static) -> Self {
        self.with(|exchange| exchange.exceptions.add_condition(condition))
    }

    /// Passes the request body to the handler as it arrives, of any size, instead of reading it first.
    ///
    /// This is for uploads, and for large webhooks whose key is in the head. The key is claimed before the body has
    /// arrived. If the body breaks after that, or if no part of it arrives for longer than
    /// [`body_timeout`](Self::body_timeout), the handler gets an error when it reads the body. The request has then
    /// failed, whatever the handler answers: its key is released, and the next try runs. The handler's answer is kept
    /// only if failures are kept too ([`Keep::Everything`](crate::Keep::Everything),
    /// [`Policy::at_most_once`](crate::Policy::at_most_once)), or if the handler calls
    /// [`keep_for`](crate::Operation::keep_for). In transaction mode the work is rolled back, whatever the policy
    /// keeps, unless the handler calls `keep_for`.
    ///
    /// The [`request_limit`](Self::request_limit) does not apply, since nothing is read; a limit such as Axum's
    /// `DefaultBodyLimit` or `RequestBodyLimitLayer` does. The contents of two requests with one key are not compared,
    /// so the key alone must identify the request.
    ///
    /// ```
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, fingerprint, key};
    ///
    /// let uploads = IdempotencyLayer::new(MemoryStore::new())
    ///     .key(key::header("X-Upload-Id"))
    ///     .fingerprint(fingerprint::off())
    ///     .stream_body();
    /// # drop(uploads);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics, when the layer is put around a service, if the key, the fingerprint or the scope needs the body, or if
    /// [`keep_request`](Self::keep_request) or [`verify`](Self::verify) is set.
    pub fn stream_body(self) -> Self {
        self.with(|exchange| exchange.stream_body = true)
    }

    /// Sets how long an answer without a length is read before it is passed on as a stream; see
    /// [`Policy::stream_after`](crate::Policy::stream_after).
    #[track_caller]
    pub fn stream_after(self, duration: Duration) -> Self {
        self.adjust(|policy| policy.stream_after(duration))
    }
}
