//! Setters of HTTP: refusals, and the header fields that a layer keeps, adds and leaves out.

macro_rules! answer_setters {
    ($($(#[$more:meta])* $name:ident),* $(,)?) => {
        $($crate::layer::setters::answer_setter! { $name $(#[$more])* })*
    };
}

macro_rules! answer_setter {
    (include_header $(#[$more:meta])*) => {
        /// Keeps a header for replays that is left out by default: `Set-Cookie`, a challenge, a CORS field.
        ///
        /// Caution: a replayed cookie reaches every client that sends the same request with the same key. Hop-by-hop
        /// fields, `Content-Length`, `Date` and `Age` belong to a single message and are never kept.
        ///
        $(#[$more])*
        pub fn include_header(self, name: ::http::HeaderName) -> Self {
            self.with(|exchange| exchange.headers.also.push(name))
        }
    };
    (exclude_header $(#[$more:meta])*) => {
        /// Leaves a header out of replays, such as a request id or a rate limit's counter.
        ///
        $(#[$more])*
        pub fn exclude_header(self, name: ::http::HeaderName) -> Self {
            self.with(|exchange| exchange.headers.not.push(name))
        }
    };
    (on_replay $(#[$more:meta])*) => {
        /// Decides about each replay: the closure sees the head of the duplicate and the kept answer, and returns the
        /// answer that the duplicate receives, changed or not, or another response in its place. Default: every replay is
        /// sent.
        ///
        /// A kept answer was made for the caller of the first request, at that time. Anyone who may no longer see it, such
        /// as a user whose grant was revoked, is refused here.
        ///
        /// The closure is asked for what would be replayed: under [`OnDuplicate::Replay`](crate::OnDuplicate::Replay), and
        /// for kept failures under the other policies that send them. Its `Err` is sent as it is and reported as
        /// [`Event::ReplayRefused`](crate::Event::ReplayRefused); the record stays as it is. If the closure panics or
        /// takes longer than [`hook_timeout`](Self::hook_timeout), the duplicate receives 503
        /// [`replay-not-decided`](crate::guide::refusals#replay-not-decided), never the kept answer. If the client
        /// disconnects meanwhile, its future is dropped. A run that was overtaken by another one is answered with 409
        /// `request-in-progress`, so that its retry is decided about. The head is cloned for the closure.
        ///
        $(#[$more])*
        pub fn on_replay<F>(
            self,
            decide: impl Fn(::http::request::Parts, $crate::value::KeptAnswer) -> F + Send + Sync + 'static,
        ) -> Self
        where
            F: Future<Output = Result<$crate::value::KeptAnswer, ::http::Response<::bytes::Bytes>>> + Send + 'static,
        {
            self.with(|exchange| {
                exchange.hooks.on_replay = Some(::std::sync::Arc::new(move |head, kept| Box::pin(decide(head, kept))));
            })
        }
    };
    (on_keep $(#[$more:meta])*) => {
        /// Changes what is kept of an answer, such as a secret that only the first client may see. The client of the
        /// first request receives the whole answer, and duplicates receive what the closure returned. Default: the answer
        /// is kept as it is.
        ///
        /// The closure sees the name of the operation, and the answer as it would be kept: without the headers that are
        /// left out. It runs after the handler and before the client receives its answer, while the lease is renewed. If
        /// it panics or takes longer than [`hook_timeout`](Self::hook_timeout), a tombstone is kept: a duplicate is
        /// refused with `response-not-retained`, and nothing that was to be hidden is kept. If the client disconnects
        /// meanwhile, it runs on in the background. A handler can say itself what duplicates receive:
        /// [`ForDuplicates`](crate::policy::ForDuplicates).
        ///
        $(#[$more])*
        pub fn on_keep<F>(
            self,
            change: impl Fn($crate::value::RecordKey, $crate::value::KeptAnswer) -> F + Send + Sync + 'static,
        ) -> Self
        where
            F: Future<Output = $crate::value::KeptAnswer> + Send + 'static,
        {
            self.with(|exchange| {
                exchange.hooks.on_keep = Some(::std::sync::Arc::new(move |key, kept| Box::pin(change(key, kept))));
            })
        }
    };
    (hook_timeout $(#[$more:meta])*) => {
        /// Sets how long [`on_replay`](Self::on_replay) and [`on_keep`](Self::on_keep) may take, each. Default: 5 seconds.
        ///
        $(#[$more])*
        ///
        /// # Panics
        ///
        /// Panics if `timeout` is zero.
        #[track_caller]
        pub fn hook_timeout(self, timeout: ::std::time::Duration) -> Self {
            let timeout = $crate::value::nonzero("hook timeout", timeout);
            self.with(|exchange| exchange.hooks.timeout = timeout)
        }
    };
    (replay_header $(#[$more:meta])*) => {
        /// Sets the header that marks a replay, with the value `true`. Default: `Idempotent-Replayed`.
        ///
        /// A first answer has neither this header nor the default one: if the handler passes on an answer that another
        /// service replayed, the layer removes the header.
        ///
        $(#[$more])*
        pub fn replay_header(self, name: ::http::HeaderName) -> Self {
            self.with(|exchange| exchange.replay_header = Some(name))
        }
    };
    (without_replay_header $(#[$more:meta])*) => {
        /// Leaves out the header that marks a replay, so that a client cannot distinguish a replay from the first
        /// answer. The layer still removes an `Idempotent-Replayed` that the handler passes on.
        ///
        $(#[$more])*
        pub fn without_replay_header(self) -> Self {
            self.with(|exchange| exchange.replay_header = None)
        }
    };
    (completed_header $(#[$more:meta])*) => {
        /// Sets the header that states when the first request ended, on its kept answer and on every replay. Default:
        /// none.
        ///
        /// An answer that could not be recorded has neither this header nor that of
        /// [`expires_header`](Self::expires_header). The value is a date as in `Date` (RFC 9110, section 5.6.7), by the
        /// clock of the process that ran the request.
        ///
        $(#[$more])*
        pub fn completed_header(self, name: ::http::HeaderName) -> Self {
            self.with(|exchange| exchange.completed_header = Some(name))
        }
    };
    (expires_header $(#[$more:meta])*) => {
        /// Sets the header that states until when an answer is kept, on the answer itself and on every replay. Default:
        /// none.
        ///
        /// The value is a date as in `Date` (RFC 9110, section 5.6.7), by the clock of the process that ran the
        /// request; the store counts by its own clock, so leave a margin of a few seconds. A record that was settled by
        /// hand ([`Payload`](crate::reconcile::Payload)) has no such header.
        ///
        $(#[$more])*
        pub fn expires_header(self, name: ::http::HeaderName) -> Self {
            self.with(|exchange| exchange.expires_header = Some(name))
        }
    };
    (sdk_hints $(#[$more:meta])*) => {
        /// Adds the header fields that SDKs follow before they look at the status, `Stripe-Should-Retry` and
        /// `X-Should-Retry`: `true` on a temporary refusal, `false` on any other refusal, on a kept failure and on its
        /// replays. Default: off.
        ///
        /// Stripe's own SDKs read the first, those that Stainless generates (such as OpenAI's) the second. Without
        /// these fields, such a client repeats every 409 several times, even if no repeat can succeed. A field that the
        /// answer already has is left unchanged.
        ///
        $(#[$more])*
        pub fn sdk_hints(self) -> Self {
            self.with(|exchange| exchange.sdk_hints = true)
        }
    };
    (problem_type_base $(#[$more:meta])*) => {
        /// Sets the page where the application explains refusals: the `type` of a problem is this URI, a `#`, and the
        /// refusal's name.
        ///
        $(#[$more])*
        pub fn problem_type_base(self, uri: impl Into<::std::borrow::Cow<'static, str>>) -> Self {
            self.with(|exchange| exchange.problem_type_base = uri.into())
        }
    };
    (problem_link $(#[$more:meta])*) => {
        /// Adds `Link: <…>; rel="describedby"` with the `type` of the problem to each problem document, for clients
        /// that do not read bodies (draft-ietf-httpapi-idempotency-key-header-07, section 2.7). Default: off.
        ///
        $(#[$more])*
        pub fn problem_link(self) -> Self {
            self.with(|exchange| exchange.problem_link = true)
        }
    };
    (problem_instance $(#[$more:meta])*) => {
        /// Sets the member `instance` of each problem document, which identifies this occurrence (RFC 9457, section
        /// 3.1.5). Default: none.
        ///
        $(#[$more])*
        pub fn problem_instance(
            self,
            instance: impl Fn(&::http::request::Parts) -> Option<String> + Send + Sync + 'static,
        ) -> Self {
            self.with(|exchange| exchange.problem_instance = Some(::std::sync::Arc::new(instance)))
        }
    };
    (render $(#[$more:meta])*) => {
        /// Sets the closure that creates the answer to each refusal, in place of the layer's problem documents.
        ///
        /// The closure sees the refusal, the head of the request, and the key if there is one;
        /// [`document`](crate::service::RefusedRequest::document) returns the layer's own document. A temporary refusal gets a
        /// `Retry-After` if its answer has none.
        ///
        $(#[$more])*
        pub fn render(
            self,
            render: impl Fn(&$crate::http::RefusedRequest<'_>) -> ::http::Response<::bytes::Bytes> + Send + Sync + 'static,
        ) -> Self {
            self.with(|exchange| exchange.render = Some(::std::sync::Arc::new(render)))
        }
    };
}

pub(crate) use {answer_setter, answer_setters};
