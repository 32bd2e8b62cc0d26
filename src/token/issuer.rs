use std::{
    error::Error,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header::CACHE_CONTROL, request::Parts};

use super::{Token, TokenRule};
use crate::value::{KeyError, Observers, Refusal, StoreError, StoreErrorKind};

/// An issuer of tokens inside a handler, for the page that the handler makes.
///
/// It is there for every request that comes through a [`TokenLayer`](crate::TokenLayer), as a request extension and,
/// with the feature `axum`, as an extractor. Its tokens are valid for the layer's purpose and for the request's
/// principal. An answer with such a token in it is sent with `Cache-Control: no-store`, whatever the handler sets.
///
/// ```
/// use axum::{Router, response::Html, routing::get};
/// use tower_idempotency::{MemoryStore, Tokens, token::{IssueError, TokenIssuer}};
///
/// async fn page(tokens: TokenIssuer) -> Result<Html<String>, IssueError> {
///     let token = tokens.issue().await?;
///     // A token needs no escaping.
///     Ok(Html(format!(r#"<form method="post"><input type="hidden" name="_token" value="{}">..."#, token.as_str())))
/// }
///
/// let tokens = Tokens::new(MemoryStore::new());
/// let app: Router = Router::new()
///     .route("/checkout", get(page).post(|| async { "ordered" }).layer(tokens.layer("checkout")));
/// # drop(app);
/// ```
#[derive(Clone)]
pub struct TokenIssuer {
    context: Arc<dyn IssuerContext>,
    principal: Result<Option<String>, Refusal>,
    /// The request's head, if a renderer is to see it.
    head: Option<Arc<Parts>>,
    issued: IssuedFlag,
}

/// What an issuer needs of the layer that it belongs to.
pub(crate) trait IssuerContext: Send + Sync {
    fn rule(&self) -> Option<&TokenRule>;

    fn observers(&self) -> &Observers;

    /// Returns the layer's response to a refusal. `head` is the request's, if the response depends on it.
    fn refusal_response(&self, head: Option<&Parts>, refusal: &Refusal) -> Response<Bytes>;
}

/// Whether a token was issued for this answer.
#[derive(Clone, Default)]
pub(crate) struct IssuedFlag(Arc<AtomicBool>);

impl TokenIssuer {
    pub(crate) fn new(
        context: Arc<dyn IssuerContext>,
        principal: Result<Option<String>, Refusal>,
        head: Option<Arc<Parts>>,
    ) -> (Self, IssuedFlag) {
        let issued = IssuedFlag::default();
        (Self { context, principal, head, issued: issued.clone() }, issued)
    }

    /// Issues a token.
    ///
    /// # Errors
    ///
    /// Returns an error if the request has no principal and the layer requires one, or if the store fails or is full.
    /// The error is a response, the layer's refusal.
    ///
    /// # Panics
    ///
    /// Panics if the operating system has no source of randomness.
    pub async fn issue(&self) -> Result<Token, IssueError> {
        let issued = match (&self.principal, self.context.rule()) {
            (Ok(principal), Some(rule)) => {
                let issued = rule.issuer.issue(&rule.purpose, principal.as_deref(), self.context.observers()).await;
                issued.map_err(|error| {
                    let refusal = match error.kind() {
                        StoreErrorKind::Invalid => Refusal::key_invalid(KeyError::malformed(
                            "the principal of the token is blank or has a control character in it",
                        )),
                        _ => Refusal::from(&error),
                    };
                    (refusal, Some(Arc::new(error)))
                })
            }
            (Err(refusal), _) => Err((refusal.clone(), None)),
            (_, None) => Err((Refusal::TokenMissing, None)),
        };
        self.issued.0.store(true, Ordering::Relaxed);
        issued.map_err(|(refusal, error)| {
            let response = self.context.refusal_response(self.head.as_deref(), &refusal);
            IssueError { refusal, error, response: Box::new(response) }
        })
    }
}

impl IssuedFlag {
    /// Adds `Cache-Control: no-store` to an answer that has a token in it, since it is for one reader.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        if self.0.load(Ordering::Relaxed) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
    }
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenIssuer").field("rule", &self.context.rule()).finish_non_exhaustive()
    }
}

/// The error if no token was issued. It is a response as well: the layer's refusal.
///
/// Its [source](Error::source) is the error of the store, which the response does not show.
#[derive(Clone, Debug)]
pub struct IssueError {
    refusal: Refusal,
    error: Option<Arc<StoreError>>,
    response: Box<Response<Bytes>>,
}

impl IssueError {
    /// Returns the reason: [`ScopeMissing`](Refusal::ScopeMissing), [`KeyInvalid`](Refusal::KeyInvalid) for a principal
    /// that is blank or has a control character in it, [`StoreUnavailable`](Refusal::StoreUnavailable) or
    /// [`StoreFull`](Refusal::StoreFull).
    #[must_use]
    pub fn refusal(&self) -> &Refusal {
        &self.refusal
    }

    /// Returns the layer's refusal.
    #[must_use]
    pub fn into_response(self) -> Response<Bytes> {
        *self.response
    }
}

impl fmt::Display for IssueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.refusal.detail())
    }
}

impl Error for IssueError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.as_deref().map(|error| error as &(dyn Error + 'static))
    }
}
