//! The setters that other builders have too.

use crate::{
    builder::{engine_setters, policy_setters},
    layer::{
        IdempotencyLayer,
        setters::{answer_setters, request_setters},
    },
};

/// The policy, as a whole and in parts.
impl IdempotencyLayer {
    policy_setters! { Policy =>
        /// ```
        /// use std::time::Duration;
        /// use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy};
        ///
        /// let base = IdempotencyLayer::new(MemoryStore::new()).lease(Duration::from_secs(10));
        /// // With the lease of the base.
        /// let feedback = base.clone().policy(Policy::reject().retention(Duration::from_secs(3)));
        /// let payments = base.policy(Policy::at_most_once());
        /// # drop((feedback, payments));
        /// ```
        policy,
        on_duplicate,
        while_running,
        keep,
        after_crash,
        retention,
        lease,
        retry_after,
        request_limit,
        response_limit,
        stream_after,
    }
}

/// The store and the work.
impl IdempotencyLayer {
    engine_setters! {
        store_timeout,
        cancel_on_disconnect,
        background_tasks,
        secret,
        observer,
        switch,
    }
}

/// Which requests are protected, and how they are read.
impl IdempotencyLayer {
    request_setters! {
        methods,
        /// If a handler takes an [`Operation`](crate::Operation), its route answers 500 while the layer is switched
        /// off; take an `Option<Operation>` instead. A handler that takes the layer's transaction (`Tx`) needs the
        /// layer.
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
        disabled,
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
        skip_routes,
        /// ```
        /// use tower_idempotency::{IdempotencyLayer, MemoryStore};
        ///
        /// let layer = IdempotencyLayer::new(MemoryStore::new())
        ///     .skip_if(|parts| parts.uri.path().starts_with("/internal/"));
        /// # drop(layer);
        /// ```
        skip_if,
        /// This is the place for signatures of callbacks and webhooks. Verification comes before the claim, so nobody
        /// can have an identifier recorded as done before its sender uses it. A redelivery, which is signed anew, is
        /// verified like the first delivery. A request that is let through without a key
        /// ([`key_optional`](Self::key_optional)) is verified too. A key in the head is extracted before, so a request
        /// without one is refused as `key-missing`.
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
        verify,
        trace_context,
        /// With [`stream_body`](Self::stream_body), the handler gets an error when it reads the body (a
        /// [`std::io::Error`] of the kind `TimedOut`), and its request has failed.
        body_timeout,
        waiting_body_limit,
        /// ```
        /// use axum::{Router, body::Body, http::Request, routing::post};
        /// use tower::ServiceExt;
        /// use tower_idempotency::{IdempotencyLayer, MemoryStore, store::{RecordKey, StoreAdmin}};
        ///
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
        /// let store = MemoryStore::new();
        /// let layer = IdempotencyLayer::new(store.clone()).route("orders").keep_request();
        /// let app = Router::new().route("/orders", post(|| async { "ordered" }).layer(layer));
        ///
        /// app.oneshot(Request::post("/orders").header("Idempotency-Key", "7f0c").body(Body::from("one book"))?).await?;
        ///
        /// let record = store.inspect(&RecordKey::new("orders", None, "7f0c")?).await?.unwrap();
        /// assert_eq!(record.note, "one book");
        /// # Ok(())
        /// # }
        /// ```
        keep_request,
    }
}

/// Refusals, and header fields of answers.
impl IdempotencyLayer {
    answer_setters! {
        include_header,
        exclude_header,
        /// ```
        /// use bytes::Bytes;
        /// use http::{Response, StatusCode};
        /// use tower_idempotency::{IdempotencyLayer, MemoryStore};
        ///
        /// async fn may_read(user: String) -> bool {
        ///     user != "mallory" // A query in the database of grants.
        /// }
        ///
        /// let layer = IdempotencyLayer::new(MemoryStore::new()).on_replay(|head, kept| async move {
        ///     let user = head.headers.get("x-user").and_then(|user| user.to_str().ok()).unwrap_or_default();
        ///     if may_read(user.to_owned()).await {
        ///         return Ok(kept);
        ///     }
        ///     let mut refused = Response::new(Bytes::from_static(b"no longer yours"));
        ///     *refused.status_mut() = StatusCode::FORBIDDEN;
        ///     Err(refused)
        /// });
        /// # drop(layer);
        /// ```
        on_replay,
        /// ```
        /// use tower_idempotency::{IdempotencyLayer, MemoryStore};
        ///
        /// let layer = IdempotencyLayer::new(MemoryStore::new()).on_keep(|_, mut kept| async move {
        ///     let body = String::from_utf8_lossy(kept.body()).replace("k-29c1", "shown once");
        ///     kept.set_body(body);
        ///     kept
        /// });
        /// # drop(layer);
        /// ```
        on_keep,
        hook_timeout,
        replay_header,
        without_replay_header,
        completed_header,
        /// From then on a request with the same key runs again.
        expires_header,
        sdk_hints,
        problem_type_base,
        problem_link,
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
        problem_instance,
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
        render,
    }
}
