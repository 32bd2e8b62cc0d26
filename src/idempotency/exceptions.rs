//! What a layer leaves alone, and what it does not read.

use std::time::Duration;

use http::request::Parts;

use super::IdempotencyLayer;

impl IdempotencyLayer {
    /// Switches the layer off: every request reaches the inner service unprotected, at no cost. Default: `false`.
    ///
    /// What [`verify`](Self::verify) asks is asked all the same: a route whose duplicates may run is still no route for
    /// forgeries. Leave `verify` out as well if nothing is to be verified.
    ///
    /// This is how a configuration decides whether a route is protected. The type of the service stays the same, so no
    /// `if` around `Router::layer` is needed. `tower::util::option_layer` cannot do this in front of an Axum router,
    /// since its two cases answer with bodies of different types.
    ///
    /// A handler that takes an [`Operation`](crate::Operation) answers 500 while the layer is switched off; let it take
    /// an `Option<Operation>`. A handler that takes the layer's transaction (`Tx`) cannot do without the layer.
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
    /// It is asked for requests of the protected [methods](Self::methods) only. Several calls add up: one condition that
    /// holds is enough.
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

    /// Does not read the request body: it reaches the handler as it comes, however large it is.
    ///
    /// This is for uploads and for large webhooks whose key is in the head. The key is claimed before the body is
    /// there. If the body breaks after that, or stands still for longer than [`body_timeout`](Self::body_timeout), the
    /// handler gets an error where it reads the body, and the request has failed, whatever the handler answers: its key is
    /// released, and the next try runs. Only if failures are kept too ([`Keep::Everything`](crate::Keep::Everything),
    /// [`Policy::at_most_once`](crate::Policy::at_most_once)), or if the handler says
    /// [`keep_for`](crate::Operation::keep_for), is the handler's answer kept then. In transaction mode it is rolled back
    /// unless the handler says so, whatever the policy keeps.
    ///
    /// The [`request_limit`](Self::request_limit) does not apply, since nothing is read; a limit such as Axum's
    /// `DefaultBodyLimit` or `RequestBodyLimitLayer` does. Nobody compares what two requests with one key ask for, so the
    /// key alone has to say it.
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
    /// Panics when the layer is put around a service, if the key, the fingerprint or the scope needs the body, or if
    /// [`keep_request`](Self::keep_request) keeps it or [`verify`](Self::verify) sees it.
    pub fn stream_body(self) -> Self {
        self.with(|exchange| exchange.stream_body = true)
    }

    /// How long an answer without a length is read before it is passed on as a stream; see
    /// [`Policy::stream_after`](crate::Policy::stream_after).
    #[track_caller]
    pub fn stream_after(self, duration: Duration) -> Self {
        self.adjust(|policy| policy.stream_after(duration))
    }
}
