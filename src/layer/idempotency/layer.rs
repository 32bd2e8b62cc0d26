use std::{sync::Arc, time::Duration};

use http::{HeaderName, Method};
use tower_layer::Layer;

use crate::{
    engine::{Adjusted, BackgroundTasks, Engine, WaitingBodies},
    extract::{
        Credential, Credentials, fingerprint::IntoFingerprintExtractor, key::IntoKeyExtractor,
        scope::IntoScopeExtractor,
    },
    http::{Exchange, FailOpen, Idempotency, Scoping, assert_replayable},
    layer::Preset,
    store::{Store, TransactionalStore},
    value::{Observer, Policy, Secret, nonzero},
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
    pub(super) exchange: Arc<Exchange>,
    pub(super) adjusted: Adjusted,
}

impl IdempotencyLayer {
    /// Creates a layer that keeps its records in `store`: with [`Policy::replay`], and everything else as described
    /// above.
    pub fn new(store: impl Store) -> Self {
        Self::of(Arc::new(Exchange::new(Engine::new(store))))
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
        Self::of(Arc::new(Exchange::new(Engine::transactional(store))))
    }

    fn of(exchange: Arc<Exchange>) -> Self {
        Self { exchange, adjusted: Adjusted::default() }
    }

    /// Applies a preset: everything that a platform or a convention asks for, in one call. Later calls adjust it.
    pub fn preset(self, preset: Preset) -> Self {
        preset.apply(self)
    }

    /// Sets where the key comes from. Default: [`key::header("Idempotency-Key")`](crate::key::header).
    pub fn key(self, key: impl IntoKeyExtractor) -> Self {
        let key = key.into_key_extractor();
        self.with(|exchange| exchange.key = key)
    }

    /// Lets a request without a key through unprotected, instead of refusing it.
    pub fn optional(self) -> Self {
        self.with(|exchange| exchange.key_required = false)
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
        self.with(|exchange| exchange.route = Some(name.into()))
    }

    /// Sets which methods are protected. Default: `POST` and `PATCH`, which HTTP does not define as idempotent (RFC
    /// 9110, section 9.2.2).
    ///
    /// # Panics
    ///
    /// Panics if `HEAD`, `OPTIONS`, `TRACE` or `CONNECT` is among them, since their answers cannot be replayed, or if
    /// there is no method at all.
    #[track_caller]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        let methods = assert_replayable(methods);
        self.with(|exchange| exchange.methods = methods)
    }

    /// Sets how long a client may pause between two parts of a request body. Default: 60 seconds.
    ///
    /// After that the client receives 408 `body-timeout`, and nothing is claimed. With
    /// [`stream_body`](Self::stream_body), the handler gets an error when it reads the body (a [`std::io::Error`] of
    /// the kind `TimedOut`), and its request has failed.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn body_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("body timeout", timeout);
        self.with(|exchange| exchange.body_timeout = timeout)
    }

    /// Sets how many bytes of request bodies the duplicates that [wait](crate::WhileRunning::Wait) may hold in total.
    /// Default: 64 MiB.
    ///
    /// Beyond this limit, a duplicate receives at once what it would receive at the end of its wait: 409, or the reply
    /// of [`WhileRunning::WaitThenRespond`](crate::WhileRunning::WaitThenRespond). Clones of a layer share the limit.
    pub fn waiting_body_limit(self, bytes: usize) -> Self {
        self.with_engine(|engine| engine.waiting = WaitingBodies::new(bytes))
    }

    /// Keeps the unchanged request body with the record, for reconciliation and audits. Default: off.
    ///
    /// The body is the [`note`](crate::store::Record::note) of the record.
    /// [`inspect`](crate::store::StoreAdmin::inspect) and [`list`](crate::store::StoreAdmin::list) return it, and SQL
    /// stores have it in a column of that name. It is there from the claim on, so that an operation whose process died
    /// can be identified, and for as long as the record exists. After a takeover the record has the body of the try
    /// that runs. A body longer than [`request_limit`](Policy::request_limit) is refused, and nothing of it is kept.
    ///
    /// Caution: a reader of the store, or of a backup of it, can read what clients sent, such as card numbers,
    /// passwords and names. The store also needs that much more space. Nothing is encrypted or left out.
    ///
    /// ```
    /// use axum::{Router, body::Body, http::Request, routing::post};
    /// use tower::ServiceExt;
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, RecordKey, store::StoreAdmin};
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
    pub fn keep_request(self) -> Self {
        self.with(|exchange| exchange.keep_request = true)
    }

    /// Keeps a header for replays that is left out by default: `Set-Cookie`, a challenge, a CORS field.
    ///
    /// Caution: a replayed cookie reaches every client that sends the same request with the same key. Hop-by-hop
    /// fields, `Content-Length`, `Date` and `Age` belong to a single message and are never kept.
    pub fn include_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.headers.also.push(name))
    }

    /// Leaves a header out of replays, such as a request id or a rate limit's counter.
    pub fn exclude_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.headers.not.push(name))
    }

    /// Sets how long the store may take to answer. Default: 5 seconds.
    ///
    /// This limits how long a request waits for its claim, and how long an answer waits to be recorded.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn store_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("store timeout", timeout);
        self.with_engine(|engine| engine.store_timeout = timeout)
    }

    /// Lets a request through unprotected if the store is unavailable, instead of refusing it with 503.
    ///
    /// Such a request has no [`Operation`](crate::Operation). A duplicate runs again, so this is for routes where
    /// acting twice is better than not acting. Every error of the store counts as unavailable, except [`Corrupt`] and
    /// [`Invalid`]: with these, a record may exist that states that the operation was done. A full store does not count
    /// as unavailable, since a client that fills it could choose which routes are unprotected; see
    /// [`fail_open_when_full`](Self::fail_open_when_full).
    ///
    /// [`Corrupt`]: crate::StoreErrorKind::Corrupt
    /// [`Invalid`]: crate::StoreErrorKind::Invalid
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

    /// Drops the work if its client disconnects, instead of finishing it. Its claim then lapses.
    pub fn cancel_on_disconnect(self) -> Self {
        self.with(|exchange| exchange.attached = true)
    }

    /// Sets the [`BackgroundTasks`] that limit, count and await work whose client has left. Clones of a layer share
    /// them.
    pub fn background_tasks(self, background_tasks: BackgroundTasks) -> Self {
        self.with_engine(|engine| engine.background_tasks = background_tasks)
    }

    /// Sets the secret that keys the digests of callers and contents in the store, in logs and at other services.
    /// Default: none.
    ///
    /// See [`Secret`] for what it protects, and for how to replace it.
    pub fn secret(self, secret: Secret) -> Self {
        self.with_engine(|engine| engine.secret = Some(secret))
    }

    /// Sets the observer that receives the layer's [events](crate::Event).
    pub fn observer(self, observer: impl Observer) -> Self {
        self.with_engine(|engine| engine.observer = Some(Arc::new(observer)))
    }

    #[track_caller]
    pub(super) fn adjust(mut self, change: impl FnOnce(Policy) -> Policy) -> Self {
        self.adjusted.note();
        self.with(|exchange| exchange.policy = change(exchange.policy.clone()))
    }

    fn with_engine(self, change: impl FnOnce(&mut Engine)) -> Self {
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
