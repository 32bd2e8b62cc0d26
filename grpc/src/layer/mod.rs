//! The builder: what is of gRPC is in this file, and what a layer of HTTP has too in `common`.

mod common;

use std::{sync::Arc, time::Duration};

use tower_idempotency::{
    IdempotencyLayer,
    store::{Store, TransactionalStore},
};
use tower_layer::Layer;

use crate::{
    answer::Handler,
    call::LeftAlone,
    key,
    method::{ClientStreams, Settings},
    refusal,
    request::PREFIX,
    service::GrpcIdempotency,
};

/// A layer that makes the calls behind it safe to repeat.
///
/// A call has a key, by default in the metadata `idempotency-key`. The first call with a key runs. While it runs, a
/// duplicate receives `ABORTED`; once it has ended with `OK`, a duplicate receives its message, its metadata and its
/// trailers again, marked with `idempotent-replayed: true`. A call that ended with another code releases its key, so that
/// the next try runs; [`codes`](crate::codes) says how to keep more.
///
/// It fits `Server::layer`, with which it sees each call, and `named_layer` around one service:
///
/// ```
/// use tonic::{service::LayerExt, transport::Server};
/// use tower_idempotency::MemoryStore;
/// use tower_idempotency_grpc::GrpcLayer;
///
/// let layer = GrpcLayer::new(MemoryStore::new());
/// // Around all services; the others' calls reach them untouched.
/// let server = Server::builder().layer(layer.clone().only(["bank.Transfers/Create", "bank.Transfers/Cancel"]));
/// // Around one service.
/// # #[derive(Clone)] struct TransfersServer;
/// let transfers = layer.named_layer(TransfersServer);
/// # drop((server, transfers));
/// ```
///
/// # Which calls are protected
///
/// Those of the methods that [`only`](Self::only) names, or of all methods without it. They have to have a key, unless
/// it is [optional](Self::key_optional). The operation is identified by the method, the [scope](Self::scope) and the key.
///
/// A protected call has one message. One that sends a stream of messages is refused, or passes, as
/// [`client_streams`](Self::client_streams) says. An answer that is a stream reaches the client as it comes, and a
/// duplicate receives `ALREADY_EXISTS`.
///
/// # What the handler gets
///
/// An [`Operation`](tower_idempotency::Operation) is in the extensions of its request; in transaction mode it gives the
/// transaction. The message is decompressed, and the answer will not be compressed.
///
/// # The runtime
///
/// It runs inside a Tokio runtime whose timer is enabled. If a client leaves, or its deadline passes, its work continues in that
/// runtime: see [`background_tasks`](Self::background_tasks).
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct GrpcLayer {
    core: IdempotencyLayer,
    settings: Arc<Settings>,
}

impl GrpcLayer {
    /// Creates a layer that keeps its records in `store`: with [`Policy::replay`](tower_idempotency::Policy::replay), and everything else as described
    /// above.
    pub fn new(store: impl Store) -> Self {
        Self::around(IdempotencyLayer::new(store))
    }

    /// Creates a layer that opens a transaction in the database of `store`. The handler works in the same transaction:
    /// its effect and its record are committed together, or neither is.
    ///
    /// The handler takes it by `Operation::transaction`. A call that ends with a code that is not kept is rolled back.
    pub fn transactional(store: impl TransactionalStore) -> Self {
        Self::around(IdempotencyLayer::transactional(store))
    }

    fn around(core: IdempotencyLayer) -> Self {
        let settings = Settings::default();
        let core = core
            .key(key::metadata("idempotency-key"))
            .route_by_path()
            .skip_if(|parts| parts.extensions.get::<LeftAlone>().is_some())
            .render(refusal::render)
            .request_limit(settings.request_limit + PREFIX)
            .response_limit(settings.response_limit + PREFIX);
        Self { core, settings: Arc::new(settings) }
    }

    /// Names the methods that are protected, as `package.Service/Method`, or as `package.Service` for all of a service.
    /// Default: all.
    ///
    /// The calls of others reach the inner service untouched. Several calls add up.
    ///
    /// # Panics
    ///
    /// Panics if a name is neither.
    #[track_caller]
    pub fn only<'a>(self, methods: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|settings| settings.add_only(methods))
    }

    /// Names methods that are not protected: their calls reach the inner service untouched. Several calls add up, and
    /// count more than [`only`](Self::only).
    ///
    /// # Panics
    ///
    /// Panics if a name is neither `package.Service/Method` nor `package.Service`.
    #[track_caller]
    pub fn skip<'a>(self, methods: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|settings| settings.add_skipped(methods))
    }

    /// Names methods to which clients send a stream of messages, and sets what happens to their calls.
    ///
    /// A call with a key that turns out to send a stream is refused all the same: as soon as its second message begins,
    /// or if it goes on for longer than [`end_timeout`](Self::end_timeout) after its first one.
    ///
    /// ```
    /// use tower_idempotency::MemoryStore;
    /// use tower_idempotency_grpc::{ClientStreams, GrpcLayer};
    ///
    /// let layer = GrpcLayer::new(MemoryStore::new())
    ///     .client_streams(ClientStreams::Pass, ["files.Files/Upload", "chat.Chat"]);
    /// # drop(layer);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if a name is neither `package.Service/Method` nor `package.Service`.
    #[track_caller]
    pub fn client_streams<'a>(self, what: ClientStreams, methods: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|settings| settings.add_client_streams(what, methods))
    }

    /// Names methods that answer with a stream of messages, so that their answers reach clients from the first message
    /// on.
    ///
    /// Other answers are read until they are known to be one message. One is a stream as soon as its second message
    /// begins, or if it has not ended some time after its head ([`stream_after`](Self::stream_after)).
    ///
    /// # Panics
    ///
    /// Panics if a name is neither `package.Service/Method` nor `package.Service`.
    #[track_caller]
    pub fn server_streams<'a>(self, methods: impl IntoIterator<Item = &'a str>) -> Self {
        self.with(|settings| settings.add_server_streams(methods))
    }

    /// Sets how long the end of a request may come after its message. Default: 10 seconds.
    ///
    /// A client sends the end with its message, so this is for ends that are lost on the way, and for clients that send
    /// a stream. After it the call is refused (`UNIMPLEMENTED`, `client-stream`), and nothing is claimed.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero: no request ends with its message to the moment.
    #[track_caller]
    pub fn end_timeout(self, timeout: Duration) -> Self {
        assert!(!timeout.is_zero(), "a timeout of zero for the end of a request");
        self.with(|settings| settings.end_timeout = timeout)
    }

    /// Sets how long an answer may go on after its head before it counts as a stream. Default: 1 second.
    ///
    /// A handler of tonic that answers with one message gives all of it at once.
    pub fn stream_after(self, duration: Duration) -> Self {
        self.with(|settings| settings.stream_after = duration)
    }

    /// Sets how long the message of a request may be, decompressed, in bytes. Default: 4 MiB, as in tonic.
    ///
    /// A longer one is refused (`RESOURCE_EXHAUSTED`, `body-too-large`).
    pub fn request_limit(self, bytes: usize) -> Self {
        let layer = self.configure(|core| core.request_limit(bytes.saturating_add(PREFIX)));
        layer.with(|settings| settings.request_limit = bytes)
    }

    /// Sets how long the message of an answer may be to be kept, in bytes. Default: 4 MiB.
    ///
    /// A longer one reaches its client, but a duplicate receives `ALREADY_EXISTS` (`response-not-retained`).
    pub fn response_limit(self, bytes: usize) -> Self {
        let layer = self.configure(|core| core.response_limit(bytes.saturating_add(PREFIX)));
        layer.with(|settings| settings.response_limit = bytes)
    }

    /// Changes the settings that a layer of HTTP has too, and that have no method here.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tower_idempotency::MemoryStore;
    /// use tower_idempotency_grpc::GrpcLayer;
    ///
    /// let layer = GrpcLayer::new(MemoryStore::new())
    ///     .configure(|core| core.store_timeout(Duration::from_secs(2)).cancel_on_disconnect());
    /// # drop(layer);
    /// ```
    ///
    /// The [guide](crate::guide#what-of-http-does-not-fit) lists those that do not fit gRPC.
    pub fn configure(self, change: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) -> Self {
        Self { core: change(self.core), ..self }
    }

    fn with(mut self, change: impl FnOnce(&mut Settings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }
}

impl<S> Layer<S> for GrpcLayer {
    type Service = GrpcIdempotency<S>;

    /// Puts the layer around a service.
    ///
    /// # Panics
    ///
    /// Panics if two settings contradict each other; the message names them.
    #[track_caller]
    fn layer(&self, inner: S) -> GrpcIdempotency<S> {
        GrpcIdempotency::new(self.core.layer(Handler { inner }), self.settings.clone())
    }
}
