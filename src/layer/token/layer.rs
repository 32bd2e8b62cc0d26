use std::sync::Arc;

use http::HeaderName;
use tower_layer::Layer;

use crate::{
    engine::Engine,
    extract::{
        fingerprint::{self, FingerprintExtractor, IntoFingerprintExtractor},
        key,
        scope::IntoScopeExtractor,
    },
    http::{Exchange, Idempotency, Scoping},
    token::{Issuer, TokenRule, tokens::Tokens},
    value::{OnDuplicate, Policy, check_name},
};

/// A layer that requires a token of its purpose, and accepts each token once. Created by
/// [`Tokens::layer`](crate::Tokens::layer).
///
/// | the token | answer |
/// | --- | --- |
/// | is missing | 400 `token-missing` |
/// | was never issued, has expired, or is for another purpose or principal | 403 `token-invalid` |
/// | is in use | 409 `request-in-progress` |
/// | was used | 409 `token-used`, or the first answer: [`on_duplicate`](Self::on_duplicate) |
///
/// The answer to an expired token contains a new one, in the header for tokens, and is sent `no-store`. A signed token
/// is replaced if it was issued for this purpose and principal. The store does not know which tokens have expired, so
/// every value in the form of a stored token is replaced if the request has a [principal](Self::principal). The new
/// token is for the form that is shown again. The operation may have been done with the old token, so let the user
/// decide, and do not send anything again by a script.
///
/// A token in the header is checked first. If duplicates are refused, the body then reaches the handler as it arrives,
/// of any size. Otherwise the body is read first, up to its [limit](Self::request_limit). If a body breaks after its
/// token was claimed, the request has failed, whatever the handler answers, and the token is released.
///
/// An answer of 401, 407 or 429 undoes the attempt: the token is valid as if it had not been sent.
///
/// Requests of other [methods](Self::methods) reach the inner service untouched. A handler behind the layer can issue
/// tokens with the [`TokenIssuer`](crate::token::TokenIssuer) for a request of any method.
///
/// This layer has the settings of an [`IdempotencyLayer`](crate::IdempotencyLayer), except those that the token itself
/// defines (key, scope, route) and those that would let a request without a valid token through (`key_optional`,
/// `fail_open`).
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct TokenLayer {
    pub(crate) exchange: Arc<Exchange>,
    /// The fingerprint that is compared if duplicates are not refused.
    compared: FingerprintExtractor,
}

impl TokenLayer {
    pub(crate) fn new(issuer: Issuer, purpose: Arc<str>) -> Self {
        let mut engine = Engine::new(issuer.store.clone());
        engine.observers = issuer.observers.clone();
        let mut exchange = Exchange::new(engine);
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
        exchange.policy = Policy::reject().into();
        exchange.fingerprint = fingerprint::off();
        Self { exchange: Arc::new(exchange), compared: fingerprint::bytes() }
    }

    /// Sets to whom a token must have been issued. Default: to nobody.
    ///
    /// If the [scope is optional](crate::scope::ScopeExtractor::optional), a token that was issued to nobody is valid
    /// for requests without a principal, and only for those.
    pub fn principal(self, principal: impl IntoScopeExtractor) -> Self {
        let principal = principal.into_scope_extractor();
        self.with(|exchange| exchange.scoping = Scoping::Scope(principal))
    }

    /// Sets the header that a token can be in. Default: `X-Submit-Token`.
    ///
    /// # Panics
    ///
    /// Panics if `name` is not a header name.
    #[track_caller]
    pub fn header(self, name: &str) -> Self {
        let key = key::header(name);
        let Ok(header) = HeaderName::from_bytes(name.as_bytes()) else { panic!("{name:?} is no header name") };
        self.with_rule(|rule| rule.header = header).with(|exchange| exchange.key = key)
    }

    /// Sets the form field that a token can be in. Default: `_token`.
    ///
    /// With the feature `form`, a `multipart/form-data` body is searched for a token too. Without the feature, a token
    /// in such a body counts as missing.
    pub fn field(self, name: &str) -> Self {
        self.with_rule(|rule| rule.field = key::field(name))
    }

    /// Streams uploads: a `multipart/form-data` body is read only as far as the token, and no further than `bytes`.
    ///
    /// The body reaches the handler unchanged, including the part with the token. In the form, the field has to come
    /// before the files; beyond `bytes` it counts as missing. Of two such fields the first counts. The token is claimed
    /// before the body has arrived, as it is with a token in the header, and only if duplicates are refused.
    ///
    /// Default: the whole body is read first, up to its [limit](Self::request_limit).
    #[cfg(feature = "form")]
    #[cfg_attr(docsrs, doc(cfg(feature = "form")))]
    pub fn multipart_prefix(self, bytes: usize) -> Self {
        self.with_rule(|rule| rule.prefix = Some(bytes))
    }

    /// Sets what counts as the same request if a duplicate is not refused; see [`on_duplicate`](Self::on_duplicate).
    /// Default: [`fingerprint::bytes()`](crate::fingerprint::bytes).
    ///
    /// If duplicates are refused, nothing is compared.
    pub fn fingerprint(self, fingerprint: impl IntoFingerprintExtractor) -> Self {
        Self { compared: fingerprint.into_fingerprint_extractor(), ..self }.comparing()
    }

    /// Adds a new token to each failed answer of the handler, in the header for tokens, and sends the answer
    /// `no-store`.
    ///
    /// The new token replaces the old one, so that there is never more than one token to spend. The old token is not
    /// released: a request with it receives the failed answer again, including the new token. So a client that lost the
    /// answer can send the request again, and a page that a browser restored does not order twice.
    ///
    /// The new token is derived from the old one, so that it is not in the kept answer: the store does not see it
    /// either.
    ///
    /// The new token is sent once the failed answer is recorded. If the store does not record the answer, the client
    /// receives it without a new token, and the client's own token stays valid.
    ///
    /// As without this setting, the old token is released after an answer that is not held (a stream, or one over the
    /// response limit), after a panic, if the handler [discards](crate::Operation::discard) its answer, and if the
    /// store issues no token. The same holds for 401, 407 and 429 before anything [began](crate::Operation::began):
    /// they undo the attempt, and the token that was sent stays valid.
    pub fn rotate_on_failure(self) -> Self {
        self.with_rule(|rule| rule.replaces = true)
    }

    fn with_rule(self, change: impl FnOnce(&mut TokenRule)) -> Self {
        self.with(|exchange| {
            exchange.tokens.as_mut().map(change);
        })
    }

    pub(super) fn apply(self, policy: Policy) -> Self {
        self.with(|exchange| exchange.policy.apply(policy)).comparing()
    }

    /// Compares the contents of two requests with one token, unless the second one is refused in any case.
    fn comparing(self) -> Self {
        let compared = match self.exchange.policy.on_duplicate {
            OnDuplicate::Reject => fingerprint::off(),
            _ => self.compared.clone(),
        };
        self.with(|exchange| exchange.fingerprint = compared)
    }

    pub(super) fn with_engine(self, change: impl FnOnce(&mut Engine)) -> Self {
        self.with(|exchange| change(Arc::make_mut(&mut exchange.engine)))
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Exchange)) -> Self {
        change(Arc::make_mut(&mut self.exchange));
        self
    }
}

impl Tokens {
    /// Creates a layer that requires a token of this purpose.
    ///
    /// # Panics
    ///
    /// Panics if `purpose` is blank or contains a control character.
    #[track_caller]
    pub fn layer(&self, purpose: impl Into<Arc<str>>) -> TokenLayer {
        let purpose = purpose.into();
        assert!(check_name(&purpose).is_ok(), "{purpose:?} is blank or has a control character in it");
        TokenLayer::new(self.issuer().clone(), purpose)
    }
}

impl<S> Layer<S> for TokenLayer {
    type Service = Idempotency<S>;

    /// Puts the layer around a service.
    ///
    /// # Panics
    ///
    /// Panics if two settings contradict each other; the message names them.
    #[track_caller]
    fn layer(&self, inner: S) -> Idempotency<S> {
        self.exchange.check();
        Idempotency::new(inner, self.exchange.clone())
    }
}
