use std::{sync::Arc, time::Duration};

use http::{HeaderName, Method};
use tower_layer::Layer;

use crate::{
    engine::{Engine, BackgroundTasks, WaitingBodies},
    exchange::{Exchange, Idempotency, Issuer, Scoping, TokenRule, assert_replayable},
    extract::{
        fingerprint::{self, FingerprintExtractor, IntoFingerprintExtractor},
        key,
        scope::IntoScopeExtractor,
    },
    value::{Observer, OnDuplicate, Policy, Secret, nonzero},
};

/// Asks for a token that was issued for this, and lets each be used once. Made by [`Tokens::layer`](super::Tokens::layer).
///
/// | the token | answer |
/// | --- | --- |
/// | is missing | 400 `token-missing` |
/// | was never issued, has expired, or is for another purpose or principal | 403 `token-invalid` |
/// | is in use | 409 `request-in-progress` |
/// | was used | 409 `token-used`, or the first answer: [`on_duplicate`](Self::on_duplicate) |
///
/// The answer to a token that has expired brings a new one, in the header that tokens are in, and is sent `no-store`: to a
/// signed token that was issued for this, and, as the store does not say what has expired, to whatever looks like a stored
/// one if the request has a [principal](Self::principal). It is for the form that is shown again. The operation may have
/// been done with the old one, so let the user decide, and send nothing again by a script.
///
/// A token in the header is looked at first, and then the body reaches the handler as it comes, however large, as long as
/// duplicates are refused. Otherwise the body is read first, up to its [limit](Self::request_limit). A body that breaks after
/// its token was claimed is a failure, whatever the handler answers, and gives the token back.
///
/// An answer of 401, 407 or 429 undoes the attempt: the token is as good as if it had not been sent.
///
/// Requests of other [methods](Self::methods) reach the inner service untouched; a handler behind the layer, whatever its
/// method, can issue tokens with the [`TokenIssuer`](crate::TokenIssuer).
///
/// What an [`IdempotencyLayer`](crate::IdempotencyLayer) can be told, this layer can be told too, except for what the token
/// itself says (key, scope, route) and for what would let a request through that has no good one (`optional`, `fail_open`).
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct TokenLayer {
    pub(super) exchange: Arc<Exchange>,
    /// What is compared if a duplicate is not refused.
    compared: FingerprintExtractor,
}

impl TokenLayer {
    pub(super) fn new(issuer: Issuer, purpose: Arc<str>) -> Self {
        let mut exchange = Exchange::new(Engine::new(issuer.store.clone()));
        let header = HeaderName::from_static("x-submit-token");
        exchange.key = key::header(header.as_str());
        exchange.tokens = Some(TokenRule {
            purpose,
            header,
            field: key::field("_token"),
            #[cfg(feature = "form")]
            prefix: None,
            issuer,
            replaces: false,
        });
        exchange.scoping = Scoping::Unscoped;
        exchange.policy = Policy::reject();
        exchange.fingerprint = fingerprint::off();
        Self { exchange: Arc::new(exchange), compared: fingerprint::bytes() }
    }

    /// Whom a token has to have been issued to. Default: to nobody.
    ///
    /// If the [scope is optional](crate::scope::ScopeExtractor::optional), a token that was issued to nobody serves requests without
    /// a principal, and only those.
    pub fn principal(self, principal: impl IntoScopeExtractor) -> Self {
        let principal = principal.into_scope_extractor();
        self.with(|exchange| exchange.scoping = Scoping::Scope(principal))
    }

    /// The header that a token can be in. Default: `X-Submit-Token`.
    ///
    /// # Panics
    ///
    /// Panics if `name` is no header name.
    #[track_caller]
    pub fn header(self, name: &str) -> Self {
        let key = key::header(name);
        let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else { panic!("{name:?} is no header name") };
        self.with_rule(|rule| rule.header = header).with(|exchange| exchange.key = key)
    }

    /// The form field that a token can be in. Default: `_token`.
    ///
    /// A `multipart/form-data` body is looked into with the feature `form`; without it, a token there counts as missing.
    pub fn field(self, name: &str) -> Self {
        self.with_rule(|rule| rule.field = key::field(name))
    }

    /// Uploads stream: a `multipart/form-data` body is read only as far as the token, and no further than `bytes`.
    ///
    /// The body reaches the handler as it came, the part with the token too. The field has to be in front of the files in
    /// the form; behind `bytes` it counts as missing. Of two such fields the first counts. The token is claimed before the
    /// body is there, as it is with a token in the header, and only where duplicates are refused.
    ///
    /// Default: the whole body is read first, up to its [limit](Self::request_limit).
    #[cfg(feature = "form")]
    #[cfg_attr(docsrs, doc(cfg(feature = "form")))]
    pub fn multipart_prefix(self, bytes: usize) -> Self {
        self.with_rule(|rule| rule.prefix = Some(bytes))
    }

    /// What counts as the same request if a duplicate is not refused; see [`on_duplicate`](Self::on_duplicate). Default:
    /// [`fingerprint::bytes()`](crate::fingerprint::bytes).
    ///
    /// Where duplicates are refused, nothing is compared.
    pub fn fingerprint(self, fingerprint: impl IntoFingerprintExtractor) -> Self {
        Self { compared: fingerprint.into_fingerprint_extractor(), ..self }.comparing()
    }

    /// A failed answer of the handler's carries a new token, in the header that tokens are in, and is sent `no-store`.
    ///
    /// The new token takes the place of the old one, so that there is never more than one to spend: the old one is not
    /// given back, and whoever sends it again gets the failed answer again, new token included. A client that lost the
    /// answer gets on by trying again; a page that a browser brought back does not order twice.
    ///
    /// The new token is made from the old one, so that it is not in the answer that is kept: the store does not see it
    /// either.
    ///
    /// The new token is told once the failed answer is recorded. If the store does not record it, the client gets the answer
    /// without a new token: its own is the one that is good.
    ///
    /// An answer that is not held (a stream, or one over the response limit), a panic, a handler that
    /// [discards](crate::Operation::discard) its answer, and a store that issues nothing give the old token back, as
    /// without this. So do 401, 407 and 429 before anything [began](crate::Operation::began): they undo the attempt, and the
    /// token that came is good as it is.
    pub fn replace_after_failure(self) -> Self {
        self.with_rule(|rule| rule.replaces = true)
    }

    /// Which methods ask for a token. Default: `POST` and `PATCH`.
    ///
    /// # Panics
    ///
    /// Panics if `HEAD`, `OPTIONS`, `TRACE` or `CONNECT` is among them: their answers cannot be replayed.
    #[track_caller]
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        let methods = assert_replayable(methods);
        self.with(|exchange| exchange.methods = methods)
    }

    /// How long a client may let a request body stand still; see
    /// [`IdempotencyLayer::body_timeout`](crate::IdempotencyLayer::body_timeout).
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn body_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("body timeout", timeout);
        self.with(|exchange| exchange.body_timeout = timeout)
    }

    /// How many bytes of bodies the duplicates that wait may hold in all; see
    /// [`IdempotencyLayer::waiting_body_limit`](crate::IdempotencyLayer::waiting_body_limit).
    pub fn waiting_body_limit(self, bytes: usize) -> Self {
        self.with_engine(|engine| engine.waiting = WaitingBodies::new(bytes))
    }

    /// Keeps the request body beside the record, as it came; see
    /// [`IdempotencyLayer::keep_request`](crate::IdempotencyLayer::keep_request). The body is read first then, wherever the
    /// token is.
    pub fn keep_request(self) -> Self {
        self.with(|exchange| exchange.keep_request = true)
    }

    /// Keeps a header for replays that is left out by default; see
    /// [`IdempotencyLayer::include_header`](crate::IdempotencyLayer::include_header).
    pub fn include_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.headers.also.push(name))
    }

    /// Leaves a header out of replays, such as a request id or a rate limit's counter.
    pub fn exclude_header(self, name: HeaderName) -> Self {
        self.with(|exchange| exchange.headers.not.push(name))
    }

    /// How long the store may take for an answer. Default: 5 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[track_caller]
    pub fn store_timeout(self, timeout: Duration) -> Self {
        let timeout = nonzero("store timeout", timeout);
        self.with_engine(|engine| engine.store_timeout = timeout)
    }

    /// The work is dropped when its client leaves, and its claim lapses, instead of being finished.
    pub fn cancel_on_disconnect(self) -> Self {
        self.with(|exchange| exchange.attached = true)
    }

    /// What bounds, counts and awaits the work that goes on without its client.
    pub fn background_tasks(self, background_tasks: BackgroundTasks) -> Self {
        self.with_engine(|engine| engine.background_tasks = background_tasks)
    }

    /// Keys with a secret what the store, logs and other services see of contents. Default: none.
    ///
    /// See [`Secret`] for what that protects, and for how a secret is replaced.
    pub fn secret(self, secret: Secret) -> Self {
        self.with_engine(|engine| engine.secret = Some(secret))
    }

    /// Is told what the layer does.
    pub fn observer(self, observer: impl Observer) -> Self {
        self.with_engine(|engine| engine.observer = Some(Arc::new(observer)))
    }

    fn with_rule(self, change: impl FnOnce(&mut TokenRule)) -> Self {
        self.with(|exchange| {
            exchange.tokens.as_mut().map(change);
        })
    }

    pub(super) fn adjust(self, change: impl FnOnce(Policy) -> Policy) -> Self {
        self.with(|exchange| exchange.policy = change(exchange.policy.clone()))
    }

    /// Compares what two requests with one token ask for, unless the second one is refused whatever it is.
    pub(super) fn comparing(self) -> Self {
        let compared = match self.exchange.policy.on_duplicate {
            OnDuplicate::Reject => fingerprint::off(),
            _ => self.compared.clone(),
        };
        self.with(|exchange| exchange.fingerprint = compared)
    }

    fn with_engine(self, change: impl FnOnce(&mut Engine)) -> Self {
        self.with(|exchange| change(Arc::make_mut(&mut exchange.engine)))
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Exchange)) -> Self {
        change(Arc::make_mut(&mut self.exchange));
        self
    }
}

impl<S> Layer<S> for TokenLayer {
    type Service = Idempotency<S>;

    /// # Panics
    ///
    /// Panics if two settings contradict each other; the text says which.
    #[track_caller]
    fn layer(&self, inner: S) -> Idempotency<S> {
        self.exchange.check();
        Idempotency::new(inner, self.exchange.clone())
    }
}
