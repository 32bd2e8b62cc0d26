//! The settings of a layer, which every step reads.

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, Method, Response};

use super::{
    record::HeaderPolicy,
    respond::{RefusedRequest, Warned},
    settings::{Exceptions, FailOpen, Hooks, TraceContextOf, Verify},
};
use crate::{
    engine::Engine,
    extract::{
        Credentials,
        fingerprint::{self, FingerprintExtractor},
        key::{self, KeyExtractor},
        scope::ScopeExtractor,
    },
    problem::{self, Instance},
    token::TokenRule,
    value::{Policy, Resolved},
};

/// The field that marks a replay, unless the layer names another.
pub(super) const MARKER: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Makes the response for a refusal.
pub(crate) type Render = dyn Fn(&RefusedRequest<'_>) -> Response<Bytes> + Send + Sync;

/// The settings of a layer, and its engine.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each stands for a call of the builder")]
pub(crate) struct Exchange {
    /// The store, the observer and the bounds, shared by all requests of the layer.
    pub(crate) engine: Arc<Engine>,
    /// What happens to duplicates, what is kept, limits and times.
    pub(crate) policy: Resolved<Policy>,
    /// The protected methods. With `GET` the list has `HEAD` too, for its warning only.
    pub(crate) methods: Vec<Method>,
    /// What names the route.
    pub(crate) route: RouteSource,
    /// Where the key comes from.
    pub(crate) key: KeyExtractor,
    /// A request that has no key is not protected, instead of being refused.
    pub(crate) key_optional: bool,
    /// Whose key it is.
    pub(crate) scoping: Scoping,
    /// What counts as the same request.
    pub(crate) fingerprint: FingerprintExtractor,
    /// Which headers of an answer are kept.
    pub(crate) headers: HeaderPolicy,
    /// The field that marks a replay, if any does.
    pub(crate) replay_header: Option<HeaderName>,
    /// The fields that say when an answer was kept, and until when.
    pub(crate) completed_header: Option<HeaderName>,
    /// The field that says until when an answer is kept.
    pub(crate) expires_header: Option<HeaderName>,
    /// Answers say in the fields of SDKs whether to repeat a request.
    pub(crate) sdk_hints: bool,
    /// The page of the refusals; the name of a refusal is its fragment.
    pub(crate) problem_type_base: Cow<'static, str>,
    /// Refusals carry a `Link` to their explanation.
    pub(crate) problem_link: bool,
    pub(crate) problem_instance: Option<Arc<Instance>>,
    /// Sees a request's head and body before anything is claimed for it.
    pub(crate) verify: Option<Arc<Verify>>,
    /// Returns the trace context of a request, which is kept with its answer.
    pub(crate) trace_context: Option<Arc<TraceContextOf>>,
    /// What the application does at a replay, and at keeping an answer.
    pub(crate) hooks: Hooks,
    /// Makes the responses of refusals in place of the problem document.
    pub(crate) render: Option<Arc<Render>>,
    /// Which store errors let a request through unprotected.
    pub(crate) fail_open: FailOpen,
    /// How long a request body may stand still.
    pub(crate) body_timeout: Duration,
    /// Nothing is protected.
    pub(crate) disabled: bool,
    /// Routes and requests that the layer leaves out.
    pub(crate) exceptions: Exceptions,
    /// The body goes to the handler as it comes.
    pub(crate) stream_body: bool,
    /// The request body is the claim's note.
    pub(crate) keep_request: bool,
    /// The keys are tokens that were issued.
    pub(crate) tokens: Option<TokenRule>,
    /// Which warnings were emitted. Clones of a layer share it, so that each warning comes once.
    pub(super) warned: Arc<Warned>,
}

/// What names the route of a request.
#[derive(Clone, Debug)]
pub(crate) enum RouteSource {
    /// The matched path, if Axum gives it, otherwise the request's path.
    Matched,
    /// The request's path.
    Path,
    /// The layer: all of its requests are of one route.
    Fixed(Arc<str>),
}

/// Whose key it is.
#[derive(Clone, Debug)]
pub(crate) enum Scoping {
    /// Nobody says so: the caller's credentials have to be the first one's.
    Credentials(Credentials),
    /// All callers are one.
    Unscoped,
    /// The request says so.
    Scope(ScopeExtractor),
}

impl Exchange {
    /// Creates the settings of a layer on which no builder call was made.
    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine: Arc::new(engine),
            policy: Policy::new().into(),
            methods: vec![Method::POST, Method::PATCH],
            route: RouteSource::Matched,
            key: key::header("Idempotency-Key"),
            key_optional: false,
            scoping: Scoping::Credentials(Credentials::default()),
            fingerprint: fingerprint::bytes(),
            headers: HeaderPolicy::default(),
            replay_header: Some(MARKER),
            completed_header: None,
            expires_header: None,
            sdk_hints: false,
            problem_type_base: Cow::Borrowed(problem::TYPE_BASE),
            problem_link: false,
            problem_instance: None,
            verify: None,
            trace_context: None,
            hooks: Hooks::default(),
            render: None,
            fail_open: FailOpen::Never,
            body_timeout: Duration::from_secs(60),
            disabled: false,
            exceptions: Exceptions::default(),
            stream_body: false,
            keep_request: false,
            tokens: None,
            warned: Arc::new(Warned::new()),
        }
    }
}

impl Scoping {
    /// Returns whether the application has said nothing about who its callers are.
    pub(super) fn is_unsaid(&self) -> bool {
        matches!(self, Self::Credentials(Credentials::Usual))
    }
}

/// The methods, if the answers to all of them can be replayed.
#[track_caller]
pub(crate) fn assert_replayable(methods: impl IntoIterator<Item = Method>) -> Vec<Method> {
    let mut methods: Vec<_> = methods.into_iter().collect();
    let odd = [Method::HEAD, Method::OPTIONS, Method::TRACE, Method::CONNECT];
    if let Some(method) = methods.iter().find(|method| odd.contains(method)) {
        panic!("{method} cannot be protected");
    }
    assert!(!methods.is_empty(), "a layer without methods protects nothing");
    if methods.contains(&Method::GET) {
        // Not protected, but looked at: its handler is that of the protected `GET`.
        methods.push(Method::HEAD);
    }
    methods
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("engine", &self.engine)
            .field("policy", &self.policy)
            .field("methods", &self.methods)
            .field("route", &self.route)
            .field("key", &self.key)
            .field("key_optional", &self.key_optional)
            .field("scoping", &self.scoping)
            .field("fingerprint", &self.fingerprint)
            .field("replay_header", &self.replay_header)
            .field("fail_open", &self.fail_open)
            .field("body_timeout", &self.body_timeout)
            .field("disabled", &self.disabled)
            .field("exceptions", &self.exceptions)
            .field("stream_body", &self.stream_body)
            .field("keep_request", &self.keep_request)
            .finish_non_exhaustive()
    }
}
