use std::sync::Arc;

use tower_layer::Layer;

use crate::{
    engine::Engine,
    extract::{
        Credential, Credentials, fingerprint::IntoFingerprintExtractor, key::IntoKeyExtractor,
        scope::IntoScopeExtractor,
    },
    http::{Exchange, FailOpen, Idempotency, RouteSource, Scoping},
    store::{Store, TransactionalStore},
    value::Policy,
};

/// A layer that makes the operations behind it safe to repeat.
///
/// A request has a key, by default in the header `Idempotency-Key`. The first request with a key runs. While that
/// request runs, a duplicate is refused (409). Once it has ended, a duplicate receives its answer again, marked with
/// `Idempotent-Replayed: true`. A request with the same key and other content is refused (422). An answer that states
/// that nothing was done, and a panic, release the key, so that the next try runs. An answer of 401, 407 or 429
/// [undoes](crate::guide::layers#answers-that-undo-the-attempt) the attempt: the key is as it was before.
///
/// The layer is cheap to clone: build one, and let each route adjust a clone.
///
/// ```
/// use axum::{Router, routing::post};
/// use std::time::Duration;
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, key, scope};
///
/// let idempotent = IdempotencyLayer::new(MemoryStore::new());
/// let app: Router = Router::new()
///     // A retry gets the first answer.
///     .route("/orders", post(|| async { "ordered" }).layer(idempotent.clone().route("orders")))
///     // The same content twice in three seconds is refused.
///     .route(
///         "/feedback",
///         post(|| async { "thanks" }).layer(
///             idempotent
///                 .key(key::content())
///                 .scope(scope::cookie("session"))
///                 .policy(Policy::reject().retention(Duration::from_secs(3))),
///         ),
///     );
/// # drop(app);
/// ```
///
/// # What is protected
///
/// `POST` and `PATCH`, unless [`methods`](Self::methods) names others. Other requests reach the inner service
/// untouched, at no cost.
///
/// The operation is identified by the route, the [scope](Self::scope) and the [key](Self::key). The route is Axum's
/// matched path with the prefix of every router that it is nested in; if there is none, the request's path. Set a fixed
/// name with [`route`](Self::route) if you can.
///
/// # What the handler gets
///
/// The layer reads the whole request body, up to [a limit](Policy::request_limit), before it claims the key; the
/// handler gets the same bytes. An [`Operation`](crate::Operation) is in the request's extensions.
///
/// # What the client gets
///
/// The layer reads the whole answer before the client receives any of it, so that the answer can be kept. A
/// `text/event-stream` is passed on as it arrives and is not kept; for other streams see
/// [`Operation::stream`](crate::Operation::stream) and [`stream_after`](Self::stream_after).
///
/// # Where it runs
///
/// Inside a Tokio runtime whose timer is enabled. If a client disconnects, its work continues in that runtime: see
/// [`background_tasks`](Self::background_tasks).
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct IdempotencyLayer {
    exchange: Arc<Exchange>,
}

impl IdempotencyLayer {
    /// Creates a layer that keeps its records in `store`: with [`Policy::replay`], and everything else as described
    /// above.
    pub fn new(store: impl Store) -> Self {
        Self { exchange: Arc::new(Exchange::new(Engine::new(store))) }
    }

    /// Creates a layer that opens a transaction in the database of `store`. The handler works in the same transaction:
    /// its effect and its record are committed together, or neither is.
    ///
    /// Everything else is as with [`new`](Self::new). See [transactions].
    ///
    #[cfg_attr(feature = "sqlite", doc = "[transactions]: crate::guide::transactions")]
    #[cfg_attr(
        not(feature = "sqlite"),
        doc = "[transactions]: https://docs.rs/tower-idempotency/latest/tower_idempotency/guide/transactions/index.html"
    )]
    pub fn transactional(store: impl TransactionalStore) -> Self {
        Self { exchange: Arc::new(Exchange::new(Engine::transactional(store))) }
    }

    /// Sets where the key comes from. Default: [`key::header("Idempotency-Key")`](crate::key::header).
    pub fn key(self, key: impl IntoKeyExtractor) -> Self {
        let key = key.into_key_extractor();
        self.with(|exchange| exchange.key = key)
    }

    /// Lets a request without a key through unprotected, instead of refusing it.
    pub fn key_optional(self) -> Self {
        self.with(|exchange| exchange.key_optional = true)
    }

    /// Sets whom a key belongs to: a user, a tenant, a merchant, and everything else that the answer depends on, such
    /// as a role. Default: no scope, and a caller has to send the [credentials](Self::credentials) of its first try
    /// again.
    ///
    /// The same key in two scopes is two operations. See [the guide](crate::guide::callers).
    pub fn scope(self, scope: impl IntoScopeExtractor) -> Self {
        let scope = scope.into_scope_extractor();
        self.with(|exchange| exchange.scoping = Scoping::Scope(scope))
    }

    /// Treats all callers as one: anyone who knows a key can get its answer.
    ///
    /// This is for routes whose callers authenticate themselves in the body, such as callbacks.
    pub fn unscoped(self) -> Self {
        self.with(|exchange| exchange.scoping = Scoping::Unscoped)
    }

    /// Sets the headers and cookies that identify the caller, in place of [the usual ones](crate::credential).
    ///
    /// ```
    /// use http::header::AUTHORIZATION;
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, credential};
    ///
    /// let layer = IdempotencyLayer::new(MemoryStore::new());
    /// let by_token = layer.clone().credentials([AUTHORIZATION]);
    /// let by_session = layer.credentials([credential::header("X-Session"), credential::cookie("session")]);
    /// # drop((by_token, by_session));
    /// ```
    ///
    /// Another caller with the same key receives 422 `other-caller`: it gets neither the first caller's answer nor a
    /// run of its own. Do not name anything that changes between two tries of one request: an honest retry would
    /// receive 422 too.
    pub fn credentials<C: Into<Credential>>(self, credentials: impl IntoIterator<Item = C>) -> Self {
        let credentials = Credentials::of(credentials.into_iter().map(Into::into));
        self.with(|exchange| exchange.scoping = Scoping::Credentials(credentials))
    }

    /// Sets what counts as the same request. Default: [`fingerprint::bytes()`](crate::fingerprint::bytes).
    pub fn fingerprint(self, fingerprint: impl IntoFingerprintExtractor) -> Self {
        let fingerprint = fingerprint.into_fingerprint_extractor();
        self.with(|exchange| exchange.fingerprint = fingerprint)
    }

    /// Sets the name of the route, in place of the matched path.
    ///
    /// If a path is renamed, its keys are no longer found: a retry across the deploy runs again. A fixed name does not
    /// change with the path. Two routes with one name are one operation.
    pub fn route(self, name: impl Into<Arc<str>>) -> Self {
        self.with(|exchange| exchange.route = RouteSource::Fixed(name.into()))
    }

    /// Names each route by the request's whole path, even if Axum matched a pattern.
    ///
    /// This is for services that look at the path themselves behind one route with a wildcard, such as those of gRPC:
    /// with the pattern as their name, all of them would be one route. A path with parameters in it makes a route of
    /// each value, so use it only if the paths are few.
    ///
    /// ```
    /// use axum::{Router, routing::post};
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation};
    ///
    /// async fn rpc(operation: Operation) -> String {
    ///     operation.record_key().route().to_owned() // "/rpc/orders.create", not "/rpc/{*method}"
    /// }
    ///
    /// let layer = IdempotencyLayer::new(MemoryStore::new()).route_by_path();
    /// let app: Router = Router::new().route("/rpc/{*method}", post(rpc).layer(layer));
    /// # drop(app);
    /// ```
    pub fn route_by_path(self) -> Self {
        self.with(|exchange| exchange.route = RouteSource::Path)
    }

    /// Passes the request body to the handler as it arrives, of any size, instead of reading it first.
    ///
    /// This is for uploads, and for large webhooks whose key is in the head. The key is claimed before the body has
    /// arrived. If the body breaks after that, or if no part of it arrives for longer than
    /// [`body_timeout`](Self::body_timeout), the handler gets an error when it reads the body. The request has then
    /// failed, whatever the handler answers: its key is released, and the next try runs. The handler's answer is kept
    /// only if failures are kept too ([`Keep::EVERYTHING`](crate::Keep::EVERYTHING),
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

    /// Lets a request through unprotected if the store is unavailable, instead of refusing it with 503.
    ///
    /// Such a request has no [`Operation`](crate::Operation). A duplicate runs again, so this is for routes where
    /// acting twice is better than not acting. Every error of the store counts as unavailable, except [`Corrupt`] and
    /// [`Invalid`]: with these, a record may exist that states that the operation was done. A full store does not count
    /// as unavailable, since a client that fills it could choose which routes are unprotected; see
    /// [`fail_open_when_full`](Self::fail_open_when_full).
    ///
    /// [`Corrupt`]: crate::store::StoreErrorKind::Corrupt
    /// [`Invalid`]: crate::store::StoreErrorKind::Invalid
    pub fn fail_open(self) -> Self {
        self.with(|exchange| exchange.fail_open = FailOpen::Away)
    }

    /// Lets a request through unprotected if the store is unavailable, and also if it is full (503 `store-full`).
    ///
    /// This includes [`fail_open`](Self::fail_open). A scope that has used up its own share of the store is still
    /// refused (429 `too-many-keys`).
    pub fn fail_open_when_full(self) -> Self {
        self.with(|exchange| exchange.fail_open = FailOpen::AwayOrFull)
    }

    pub(super) fn apply(self, policy: Policy) -> Self {
        self.with(|exchange| exchange.policy.apply(policy))
    }

    pub(super) fn with_engine(self, change: impl FnOnce(&mut Engine)) -> Self {
        self.with(|exchange| change(Arc::make_mut(&mut exchange.engine)))
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Exchange)) -> Self {
        change(Arc::make_mut(&mut self.exchange));
        self
    }
}

impl<S> Layer<S> for IdempotencyLayer {
    type Service = Idempotency<S>;

    /// Puts the layer around a service.
    ///
    /// # Panics
    ///
    /// Panics if the key is [`key::content()`](crate::key::content) and none of [`scope`](Self::scope),
    /// [`credentials`](Self::credentials) and [`unscoped`](Self::unscoped) was called. Also panics if two settings
    /// contradict each other; the message names them.
    #[track_caller]
    fn layer(&self, inner: S) -> Idempotency<S> {
        self.exchange.check();
        Idempotency::new(inner, self.exchange.clone())
    }
}
