//! One HTTP request through the engine: read it, claim, run, keep the answer or not, replay.
//!
//! # One request, top to bottom
//!
//! | step | file | hands on |
//! | --- | --- | --- |
//! | 1. is the request protected? | `service` (`call`), `inspect` (`leaves_out`), `settings/exceptions` | the parts of the request |
//! | 2. identify: key, scope, caller, as far as the head has them | `begin` (`subject`), `authenticate` if an extractor has the scope | `PartialIdentity` |
//! | 3. receive: the body, whole, streamed, or up to a token | `run` (`take`, `read`), `prefix` | `RequestBody` |
//! | 4. verify | `settings/verify` | – |
//! | 5. name the operation: key and fingerprint | `begin` (`claim`) | `ClaimRequest` |
//! | 6. claim, or wait | `run` (`go_on`), then `engine` (`admit`) | `Admission` |
//! | 7. run the handler while the lease is renewed | `handle` | the response |
//! | 8. collect the response, decide what is kept | `answer` (`collect_response`), `record/codec`, `record/headers` | `ResponseBody`, `RecordAction` |
//! | 9. end the claim | `handle` (`into_end`), then `engine` (`finish`) | `FinishOutcome` |
//! | 10. respond | `handle`; for duplicates and refusals `respond/refuse`; headers of a first answer `record/recorded` | the response |
//!
//! A duplicate leaves at step 6 for `respond/refuse` (`duplicate`, `running`, `mismatch`). A request that the layer
//! does not protect leaves at step 1 and is not moved into a future of the layer.
//!
//! # What always holds
//!
//! - Nothing is claimed before step 5 has succeeded. So a refusal up to there leaves nothing behind, and needs no
//!   cleanup.
//! - From step 6 on the future is part of an `engine::Task`: if the client disconnects, it goes on in the background.
//! - The response is sent after step 9. A client never receives an answer that contradicts the record known by then.
//! - A refusal is a response. The error type of the service is that of the inner service.
//! - Steps after the grant that few requests need are boxed: an `async fn` reserves room for all of them in every
//!   request.
//!
//! Nothing in this room is locked. `Exchange` is immutable and shared by an `Arc`; the only shared state is `Warned`,
//! an array of atomics.
//!
//! # The values between the steps
//!
//! | type | where | what it is |
//! | --- | --- | --- |
//! | `Exchange` | here | the settings of a layer, and its engine |
//! | `PartialIdentity` | `begin` | caller, scope and key, as far as the head has them |
//! | `ClaimRequest` | `begin` | the complete key, and the claim that is sent to the store |
//! | `Stop` | `settings/verify` | why a request is answered before its claim |
//! | `Admission` | `engine` | whether the request may run, and if not, why |
//! | `Run` | `engine` | a granted claim; it renews the lease and is consumed by its end |
//! | `RecordAction` | `answer` | what becomes of the record: settled, replaced, released, undone |
//! | `FinishOutcome` | `engine` | how the end went: recorded, not recorded, lost, rolled back, unknown |
//! | `OfRecord` | `record/recorded` | headers that the answer gets once it is recorded |
//!
//! A new step takes what it needs from `Exchange` and hands on a value of its own; it does not write into the settings.

mod answer;
#[cfg(feature = "axum")]
mod authenticate;
mod decide;
mod future;
mod identify;
mod inspect;
mod name;
#[cfg(feature = "form")]
mod prefix;
mod receive;
mod record;
mod respond;
mod response_kind;
mod run;
mod service;
mod settings;
mod tokens;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, Method, Response, request::Parts};

use crate::{
    engine::Engine,
    extract::{
        Credentials,
        fingerprint::{self, FingerprintExtractor},
        key::{self, KeyExtractor},
        scope::ScopeExtractor,
    },
    problem,
    token::TokenRule,
    value::{Policy, Resolved},
};

pub use self::{future::ResponseFuture, respond::RefusedRequest, service::Idempotency};
use self::{
    identify::PartialIdentity,
    name::{KeyedRequest, RequestContext},
    respond::Warned,
    settings::Exceptions,
};
pub(crate) use self::{
    record::HeaderPolicy,
    settings::{FailOpen, Verify},
};

/// The field that marks a replay, unless the layer names another.
const MARKER: HeaderName = HeaderName::from_static("idempotent-replayed");

/// Makes the response for a refusal.
pub(crate) type Render = dyn Fn(&RefusedRequest<'_>) -> Response<Bytes> + Send + Sync;

/// Names one occurrence of a problem.
pub(crate) type Instance = dyn Fn(&Parts) -> Option<String> + Send + Sync;

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
    /// A fixed name for the route, in place of the matched path.
    pub(crate) route: Option<Arc<str>>,
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
    warned: Arc<Warned>,
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
            route: None,
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
    /// Whether the application has said nothing about who its callers are.
    fn is_unsaid(&self) -> bool {
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
