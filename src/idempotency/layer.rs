use std::{sync::Arc, time::Duration};

use http::{HeaderName, Method};
use tower_layer::Layer;

use super::Preset;
use crate::{
    engine::{Adjusted, Engine, BackgroundTasks, WaitingBodies},
    exchange::{Exchange, FailOpen, Idempotency, Scoping, assert_replayable},
    extract::{
        Credential, Credentials, fingerprint::IntoFingerprintExtractor, key::IntoKeyExtractor,
        scope::IntoScopeExtractor,
    },
    store::{Store, TransactionalStore},
    value::{Observer, Policy, Secret, nonzero},
};

/// Makes the operations behind it safe to repeat.
///
/// A request brings a key, by default in the header `Idempotency-Key`. The first request with a key runs. While it
/// runs, a duplicate is refused (409); once it has ended, a duplicate gets its answer again, marked with
/// `Idempotent-Replayed: true`; a request with other content under the same key is refused (422). An answer that says
/// that nothing was done, and a panic, release the key, so that the next try runs. One of 401, 407 or 429
/// [undoes](crate::guide::layers#answers-that-undo-the-attempt) the attempt: the key is as it was.
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
/// `POST` and `PATCH`, unless [`methods`](Self::methods) says otherwise. Other requests reach the inner service
/// untouched, at no cost.
///
/// The operation is named by the route, the [scope](Self::scope) and the [key](Self::key). The route is Axum's matched
/// path with the prefix of every router that it is nested in; if there is none, the request's path. Give it a fixed
/// name with [`route`](Self::route) where you can.
///
/// # What the handler gets
///
/// The layer reads the whole request body, up to [a limit](Policy::request_limit), before it claims the key; the
/// handler gets the same bytes. An [`Operation`](crate::Operation) is in the request's extensions.
///
/// # What the client gets
///
/// The layer reads the whole answer before the client gets any of it, so that the answer can be kept. A
/// `text/event-stream` is passed on as it comes and not kept; for other streams see
/// [`Operation::stream`](crate::Operation::stream) and [`stream_after`](Self::stream_after).
///
/// # Where it runs
///
/// Inside a Tokio runtime with its timer on. Work whose client leaves goes on in that runtime: see
/// [`background_tasks`](Self::background tasks).
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct IdempotencyLayer {
    pub(super) exchange: Arc<Exchange>,
    pub(super) adjusted: Adjusted,
}

impl IdempotencyLayer {
    /// A layer that keeps its records in `store`: [`Policy::replay`], and everything else as described above.
    pub fn new(store: impl Store) -> Self {
        Self::of(Arc::new(Exchange::new(Engine::new(store))))
    }

    /// A layer that opens a transaction in the database of `store`, in which the handler works too: its effect and its
    /// record are committed together, or neither is.
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

    /// Everything that a platform or a convention asks for, in one call. Later calls adjust it.
    pub fn preset(self, preset: Preset) -> Self {
        preset.apply(self)
    }

    /// Where the key comes from. Default: [`key::header("Idempotency-Key")`](crate::key::header).
    pub fn key(self, key: impl IntoKeyExtractor) -> Self {
        let key = key.into_key_extractor();
        self.with(|exchange| exchange.key = key)
    }

    /// A request without a key is let through unprotected, instead of being refused.
    pub fn optional(self) -> Self {
        self.with(|exchange| exchange.key_required = false)
    }

    /// Says whose key it is: a user, a tenant, a merchant, and all else that the answer depends on, such as a role. Default: nobody says so, and a caller has to send the
    /// [credentials](Self::credentials) of its first try again.
    ///
    /// Two scopes never meet: the same key is two operations. See [the guide](crate::guide::callers).
    pub fn scope(self, scope: impl IntoScopeExtractor) -> Self {
        let scope = scope.into_scope_extractor();
        self.with(|exchange| exchange.scoping = Scoping::Scope(scope))
    }

    /// Takes all callers for one: whoever knows a key can get its answer.
    ///
    /// This is for routes whose callers prove themselves in the body, such as callbacks.
    pub fn unscoped(self) -> Self {
        self.with(|exchange| exchange.scoping = Scoping::Unscoped)
    }

    /// Names the headers and cookies that say who asks, in place of [the usual ones](crate::credential).
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
    /// Another caller with the same key receives 422 `other-caller`: neither the first one's answer nor a run of its own.
    /// Name nothing that changes between two tries of one request, or an honest retry receives it too.
    pub fn credentials<C: Into<Credential>>(self, credentials: impl IntoIterator<Item = C>) -> Self {
        let credentials = Credentials::of(credentials.into_iter().map(Into::into));
        self.with(|exchange| exchange.scoping = Scoping::Credentials(credentials))
    }

    /// What counts as the same request. Default: [`fingerprint::bytes()`](crate::fingerprint::bytes).
    pub fn fingerprint(self, fingerprint: impl IntoFingerprintExtractor) -> Self {
        let fingerprint = fingerprint.into_fingerprint_extractor();
        self.with(|exchange| exchange.fingerprint = fingerprint)
    }

    /// The name of the route, in place of the matched path.
    ///
    /// Renaming a path orphans its keys: a retry across the deploy runs again. A fixed name does not change with it.
    /// Two routes of one name are one operation.
    pub fn route(self, name: impl Into<Arc<str>>) -> Self {
        self.with(|exchange| exchange.route = Some(name.into()))
    }

    /// Which methods are protected. Default: `POST` and `PATCH`, those that HTTP does not call idempotent (RFC 9110,
    /// section 9.2.2).
    ///
    /// # Panics
    ///
    /// Panics if `HEAD`, `OPTIONS`, `TRACE` or `CONNECT` is among them, whose answers cannot be replayed, and if there is no
    /// method at all.
    #[track_caller]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        let methods = assert_replayable(methods);
        self.with(|exchange| exchange.methods = methods)
    }

    /// How long a client may let a request body stand still, between two of its parts. Default: 60 seconds.
    ///
    /// After that the client receives 408 `body-timeout`, and nothing is claimed. With [`stream_body`](Self::stream_body),
    /// the handler gets an error where it reads the body (a [`std::io::Error`] of the kind `TimedOut`), and its request has
    /// failed.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn body_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("body timeout", timeout);
        self.with(|exchange| exchange.body_timeout = timeout)
    }

    /// How many bytes of bodies the duplicates that [wait](crate::WhileRunning::Wait) may hold in all. Default: 64 MiB.
    ///
    /// A duplicate that finds no room receives at once what it would receive at the end of its wait: 409, or the reply of
    /// [`WhileRunning::WaitThenRespond`](crate::WhileRunning::WaitThenRespond). Clones of a layer share the room.
    pub fn waiting_body_limit(self, bytes: usize) -> Self {
        self.with_engine(|engine| engine.waiting = WaitingBodies::new(bytes))
    }

    /// Keeps the request body beside the record, as it came, for reconciliation and audits. Default: off.
    ///
    /// It is the [`note`](crate::store::Record::note) of the record, which
    /// [`inspect`](crate::store::StoreAdmin::inspect) and [`list`](crate::store::StoreAdmin::list) give back and SQL stores
    /// have in a column of that name: there from the claim on, so that an operation whose process died can be made out,
    /// and as long as the record is. A takeover keeps the body of the try that runs. A body longer than
    /// [`request_limit`](Policy::request_limit) is refused, and nothing of it is kept.
    ///
    /// Think twice: whoever reads the store, or a backup of it, then reads what clients sent, such as card numbers,
    /// passwords and names, and the store keeps that much more. Nothing is encrypted or left out.
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
    /// Think twice: a cookie that is replayed reaches whoever sends the same request with the same key. Hop-by-hop
    /// fields, `Content-Length`, `Date` and `Age` belong to a message and are never kept.
    pub fn include_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.headers.also.push(name))
    }

    /// Leaves a header out of replays, such as a request id or a rate limit's counter.
    pub fn exclude_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.headers.not.push(name))
    }

    /// How long the store may take for an answer. Default: 5 seconds.
    ///
    /// It bounds how long a request waits for its claim, and how long an answer waits to be recorded.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn store_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("store timeout", timeout);
        self.with_engine(|engine| engine.store_timeout = timeout)
    }

    /// Lets a request through unprotected if the store is away, instead of refusing it with 503.
    ///
    /// The request has no [`Operation`](crate::Operation). A duplicate runs again: this is for routes that would rather act
    /// twice than not at all. A store is away whatever its error is, but for [`Corrupt`] and [`Invalid`]: there may be a record that says that the
    /// operation was done. A store that is full is not away, since whoever fills it would choose which routes go
    /// unprotected; see [`fail_open_when_full`](Self::fail_open_when_full).
    ///
    /// [`Corrupt`]: crate::StoreErrorKind::Corrupt
    /// [`Invalid`]: crate::StoreErrorKind::Invalid
    pub fn fail_open(self) -> Self {
        self.with(|exchange| exchange.fail_open = FailOpen::Away)
    }

    /// Lets a request through unprotected if the store is away, and also if it is full (503 `store-full`).
    ///
    /// This is [`fail_open`](Self::fail_open) and more. A scope that has used up its own share of the store is refused all
    /// the same (429 `too-many-keys`).
    pub fn fail_open_when_full(self) -> Self {
        self.with(|exchange| exchange.fail_open = FailOpen::AwayOrFull)
    }

    /// The work is dropped when its client leaves, and its claim lapses, instead of being finished.
    pub fn cancel_on_disconnect(self) -> Self {
        self.with(|exchange| exchange.attached = true)
    }

    /// What bounds, counts and awaits the work that goes on without its client. Clones of a layer share one.
    pub fn background_tasks(self, background_tasks: BackgroundTasks) -> Self {
        self.with_engine(|engine| engine.background_tasks = background_tasks)
    }

    /// Keys with a secret what the store, logs and other services see of callers and contents. Default: none.
    ///
    /// See [`Secret`] for what that protects, and for how a secret is replaced.
    pub fn secret(self, secret: Secret) -> Self {
        self.with_engine(|engine| engine.secret = Some(secret))
    }

    /// Is told what the layer does.
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
    /// Panics if the key is [`key::content()`](crate::key::content) and the layer was told nothing of its callers: neither
    /// [`scope`](Self::scope), nor [`credentials`](Self::credentials), nor [`unscoped`](Self::unscoped). Panics too if two settings contradict each other; the text says
    /// which.
    #[track_caller]
    fn layer(&self, inner: S) -> Idempotency<S> {
        self.exchange.check();
        Idempotency::new(inner, self.exchange.clone())
    }
}
