//! Setters of HTTP: which requests a layer protects, and how it reads them.

macro_rules! request_setters {
    ($($(#[$more:meta])* $name:ident),* $(,)?) => {
        $($crate::layer::setters::request_setter! { $name $(#[$more])* })*
    };
}

macro_rules! request_setter {
    (methods $(#[$more:meta])*) => {
        /// Sets which methods are protected. Default: `POST` and `PATCH`, which HTTP does not define as idempotent (RFC
        /// 9110, section 9.2.2).
        ///
        $(#[$more])*
        ///
        /// # Panics
        ///
        /// Panics if `HEAD`, `OPTIONS`, `TRACE` or `CONNECT` is among them, since their answers cannot be replayed, or
        /// if there is no method at all.
        #[track_caller]
        pub fn methods(self, methods: impl IntoIterator<Item = ::http::Method>) -> Self {
            let methods = $crate::http::assert_replayable(methods);
            self.with(|exchange| exchange.methods = methods)
        }
    };
    (disabled $(#[$more:meta])*) => {
        /// Switches the layer off: every request reaches the inner service unprotected, at no cost. Default: `false`.
        ///
        /// With this setting, a configuration can decide whether a route is protected. The type of the service stays
        /// the same, so no `if` around `Router::layer` is needed. `tower::util::option_layer` cannot do this in front
        /// of an Axum router, since its two cases have response bodies of different types.
        ///
        /// [`verify`](Self::verify) still runs: a route whose duplicates may run must still refuse forgeries. If
        /// nothing is to be verified, leave out `verify` as well.
        ///
        $(#[$more])*
        pub fn disabled(self, disabled: bool) -> Self {
            self.with(|exchange| exchange.disabled = disabled)
        }
    };
    (skip_routes $(#[$more:meta])*) => {
        /// Leaves these routes out: their requests reach the inner service unprotected.
        ///
        /// A route is named as Axum matched it, with the prefix of every router that it is nested in, such as
        /// `/v1/orders/{id}`. If there is no matched route, its name is the request's path. This is for a layer that is
        /// put around a whole router. Several calls add up.
        ///
        $(#[$more])*
        pub fn skip_routes<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
            self.with(|exchange| names.into_iter().for_each(|name| exchange.exceptions.add_route(name.into())))
        }
    };
    (skip_if $(#[$more:meta])*) => {
        /// Leaves requests out: those whose head fulfils `condition` reach the inner service unprotected.
        ///
        /// The condition is checked only for requests of the protected [methods](Self::methods). Several calls add up:
        /// a request is left out if one of the conditions holds.
        ///
        $(#[$more])*
        pub fn skip_if(
            self,
            condition: impl Fn(&::http::request::Parts) -> bool + Send + Sync + 'static,
        ) -> Self {
            self.with(|exchange| exchange.exceptions.add_condition(condition))
        }
    };
    (verify $(#[$more:meta])*) => {
        /// Verifies a request before anything is claimed for it. The closure sees the head and the raw bytes of the
        /// body, and may refuse with an answer in the sender's own format. Default: no verification.
        ///
        /// An `Err` is sent as it is, is reported as [`Event::Unverified`](crate::Event::Unverified), and leaves no
        /// record. Every request of the protected [methods](Self::methods) is verified. A layer that is switched
        /// [off](Self::disabled) still verifies. The head is cloned for the closure. If the client disconnects
        /// meanwhile, the closure's future is dropped, and nothing has happened. A panic reaches the caller of the
        /// service, and nothing is claimed.
        ///
        /// **Requests that the layer leaves out are not verified**, so a forged one reaches its handler: requests of
        /// other methods, and those that [`skip_routes`](Self::skip_routes) and [`skip_if`](Self::skip_if) exclude.
        ///
        $(#[$more])*
        pub fn verify<F>(
            self,
            verify: impl Fn(::http::request::Parts, ::bytes::Bytes) -> F + Send + Sync + 'static,
        ) -> Self
        where
            F: Future<Output = Result<(), ::http::Response<::bytes::Bytes>>> + Send + 'static,
        {
            self.with(|exchange| {
                exchange.verify = Some(::std::sync::Arc::new(move |head, body| Box::pin(verify(head, body))));
            })
        }
    };
    (trace_context $(#[$more:meta])*) => {
        /// Keeps the trace context of each run with its answer, so that a replay can link to it: the closure returns the
        /// context of a request. Default: none is kept.
        ///
        /// [`Event::Replayed`](crate::Event::Replayed) and [`KeptAnswer::trace`](crate::policy::KeptAnswer::trace) have it.
        /// It takes 25 bytes of the answer. The closure is called on the request's own path, once the request has a key;
        /// what it reads of the request's headers is the client's word, and nothing more than a link may depend on it.
        ///
        /// ```
        /// use tower_idempotency::{IdempotencyLayer, MemoryStore, store::TraceContext};
        ///
        /// let layer = IdempotencyLayer::new(MemoryStore::new())
        ///     .trace_context(|head| TraceContext::from_headers(&head.headers));
        /// # drop(layer);
        /// ```
        ///
        $(#[$more])*
        pub fn trace_context(
            self,
            trace_context: impl Fn(&::http::request::Parts) -> Option<$crate::store::TraceContext> + Send + Sync + 'static,
        ) -> Self {
            self.with(|exchange| exchange.trace_context = Some(::std::sync::Arc::new(trace_context)))
        }
    };
    (body_timeout $(#[$more:meta])*) => {
        /// Sets how long a client may pause between two parts of a request body. Default: 60 seconds.
        ///
        /// After that the client receives 408 `body-timeout`, and nothing is claimed.
        ///
        $(#[$more])*
        ///
        /// # Panics
        ///
        /// Panics if `timeout` is zero.
        #[track_caller]
        pub fn body_timeout(self, timeout: ::std::time::Duration) -> Self {
            let timeout = $crate::value::nonzero("body timeout", timeout);
            self.with(|exchange| exchange.body_timeout = timeout)
        }
    };
    (waiting_body_limit $(#[$more:meta])*) => {
        /// Sets how many bytes of request bodies the duplicates that [wait](crate::WhileRunning::Wait) may hold in
        /// total. Default: 64 MiB.
        ///
        /// Beyond this limit, a duplicate receives at once what it would receive at the end of its wait: 409, or the
        /// reply of [`WhileRunning::WaitThenRespond`](crate::WhileRunning::WaitThenRespond). Clones of a layer share
        /// the limit.
        ///
        $(#[$more])*
        pub fn waiting_body_limit(self, bytes: usize) -> Self {
            self.with_engine(|engine| engine.waiting = $crate::engine::WaitingBodies::new(bytes))
        }
    };
    (keep_request $(#[$more:meta])*) => {
        /// Keeps the unchanged request body with the record, for reconciliation and audits. Default: off.
        ///
        /// The body is the [`note`](crate::store::Record::note) of the record.
        /// [`inspect`](crate::store::StoreAdmin::inspect) and [`list`](crate::store::StoreAdmin::list) return it, and
        /// SQL stores have it in a column of that name.
        ///
        /// *What it keeps*: the body of the try that was claimed, byte for byte; after a takeover, or after a release
        /// and another try, the body of the try that runs. Neither method, path nor headers, and nothing of a request
        /// that was not claimed: a duplicate, one that was refused, in transaction mode one that was rolled back. These
        /// are in a `MessageLogLayer`'s table, for stores in a database. A body longer than
        /// [`request_limit`](Self::request_limit) is refused, and nothing of it is kept.
        ///
        /// *How long*: from the claim on, so that an operation whose process died can be identified, and for as long as
        /// the record exists: for the [`retention`](Self::retention) once it is settled, for the same after a 5xx, for
        /// an hour at most after another 4xx, not at all once the attempt is undone (401, 407, 429), and if its lease
        /// lapses, for the longest of the retention, ten leases and, at most once, 30 days.
        ///
        /// Caution: a reader of the store, or of a backup of it, can read what clients sent, such as card numbers,
        /// passwords and names, unless the store is a [sealed one](crate::guide::security#sealed-records). The store
        /// also needs that much more space. Nothing is left out.
        ///
        $(#[$more])*
        pub fn keep_request(self) -> Self {
            self.with(|exchange| exchange.keep_request = true)
        }
    };
}

pub(crate) use {request_setter, request_setters};
