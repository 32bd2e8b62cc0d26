use std::{sync::Arc, time::Duration};

use http::Method;
use tower_layer::Layer;

use crate::{
    engine::{Engine, Leftovers},
    exchange::{Exchange, Idempotency, Scoping, TokenRule},
    extract::{
        fingerprint,
        key::{self, KeyExtractor},
        scope::ScopeExtractor,
    },
    store::Store,
    value::{Keep, Observer, OnDuplicate, Policy, WhileRunning},
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
/// A token in the header is looked at first, and then the body reaches the handler as it comes, however large, as long as
/// duplicates are refused. Otherwise the body is read first, up to its [limit](Self::request_limit).
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is put around a service"]
pub struct TokenLayer {
    exchange: Arc<Exchange>,
}

impl TokenLayer {
    pub(super) fn new(store: Arc<dyn Store>, purpose: Arc<str>) -> Self {
        let mut exchange = Exchange::new(Engine::new(store));
        exchange.key = key::header("X-Submit-Token");
        exchange.tokens = Some(TokenRule { purpose, field: field("_token") });
        exchange.scoping = Scoping::Unscoped;
        exchange.policy = Policy::reject();
        exchange.fingerprint = fingerprint::off();
        Self { exchange: Arc::new(exchange) }
    }

    /// Whom a token has to have been issued to. Default: to nobody.
    ///
    /// Where the [scope is optional](ScopeExtractor::optional), a token that was issued to nobody serves requests without
    /// a principal, and only those.
    pub fn principal(self, principal: ScopeExtractor) -> Self {
        self.with(|exchange| exchange.scoping = Scoping::Scope(principal))
    }

    /// The header that a token can be in. Default: `X-Submit-Token`.
    ///
    /// # Panics
    ///
    /// Where `name` is no header name.
    #[track_caller]
    pub fn header(self, name: &str) -> Self {
        let header = key::header(name);
        self.with(|exchange| exchange.key = header)
    }

    /// The form field that a token can be in. Default: `_token`.
    #[cfg(feature = "form")]
    #[cfg_attr(docsrs, doc(cfg(feature = "form")))]
    pub fn field(self, name: &str) -> Self {
        self.with(|exchange| {
            if let Some(rule) = &mut exchange.tokens {
                rule.field = field(name);
            }
        })
    }

    /// What a request with a used token gets. Default: 409 `token-used`.
    ///
    /// With [`OnDuplicate::Replay`] it gets the first answer, if it asks for the same: a form that a browser brought back
    /// must not be answered with another order's success. The same token with other content is told so with 422.
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.with(|exchange| {
            exchange.fingerprint = match on_duplicate {
                OnDuplicate::Replay => fingerprint::bytes(),
                _ => fingerprint::off(),
            };
            exchange.policy = exchange.policy.clone().on_duplicate(on_duplicate);
        })
    }

    /// What a request with a token in use gets; see [`Policy::while_running`].
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Which answers spend the token. Default: 2xx and 3xx; any other gives it back, with its first expiry.
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// How long a used token is known as used. Default: 24 hours; after that it is unknown, and as little good.
    pub fn retention(self, retention: Duration) -> Self {
        self.adjust(|policy| policy.retention(retention))
    }

    /// How long a token in use stays so without a sign of life; see [`Policy::lease`].
    ///
    /// # Panics
    ///
    /// Where `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        let policy = self.exchange.policy.clone().lease(lease);
        self.with(|exchange| exchange.policy = policy)
    }

    /// How long a request body may be, where it is read before the handler gets it; see [`Policy::request_limit`].
    pub fn request_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.request_limit(bytes))
    }

    /// Which methods ask for a token. Default: `POST` and `PATCH`.
    pub fn methods(self, methods: impl IntoIterator<Item = Method>) -> Self {
        self.with(|exchange| exchange.methods = methods.into_iter().collect())
    }

    /// How long the store may take for an answer. Default: 5 seconds.
    pub fn store_timeout(self, timeout: Duration) -> Self {
        self.with_engine(|engine| engine.store_timeout = timeout)
    }

    /// What bounds, counts and awaits the work that goes on without its client.
    pub fn leftovers(self, leftovers: Leftovers) -> Self {
        self.with_engine(|engine| engine.leftovers = leftovers)
    }

    /// Is told what the layer does.
    pub fn observer(self, observer: impl Observer) -> Self {
        self.with_engine(|engine| engine.observer = Some(Arc::new(observer)))
    }

    fn adjust(self, change: impl FnOnce(Policy) -> Policy) -> Self {
        self.with(|exchange| exchange.policy = change(exchange.policy.clone()))
    }

    fn with_engine(self, change: impl FnOnce(&mut Engine)) -> Self {
        self.with(|exchange| change(Arc::make_mut(&mut exchange.engine)))
    }

    fn with(mut self, change: impl FnOnce(&mut Exchange)) -> Self {
        change(Arc::make_mut(&mut self.exchange));
        self
    }
}

impl<S> Layer<S> for TokenLayer {
    type Service = Idempotency<S>;

    fn layer(&self, inner: S) -> Idempotency<S> {
        Idempotency::new(inner, self.exchange.clone())
    }
}

/// Without the feature `form` there is no field to look into.
fn field(name: &str) -> Option<KeyExtractor> {
    #[cfg(feature = "form")]
    let field = Some(key::form(name));
    #[cfg(not(feature = "form"))]
    let field = {
        let _ = name;
        None
    };
    field
}
