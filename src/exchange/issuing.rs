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
use http_body::Body;

use super::{ClaimRequest, Exchange, Scoping, Token, token::PresentedToken};
use crate::{
    body::ResponseBody,
    value::{KeyError, Refusal, StoreErrorKind},
};

/// An issuer of tokens inside a handler, for the page that the handler makes.
///
/// It is there for every request that comes through a [`TokenLayer`](crate::TokenLayer), as a request extension and,
/// with the feature `axum`, as an extractor. Its tokens are valid for the layer's purpose and for the request's
/// principal. An answer with such a token in it is sent with `Cache-Control: no-store`, whatever the handler sets.
///
/// ```
/// use axum::{Router, response::Html, routing::get};
/// use tower_idempotency::{IssueError, MemoryStore, TokenIssuer, Tokens};
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
    exchange: Arc<Exchange>,
    principal: Result<Option<String>, Refusal>,
    /// The request's head, if a renderer is to see it.
    head: Option<Arc<Parts>>,
    issued: Issued,
}

/// Whether a token was issued for this answer.
#[derive(Clone, Default)]
pub(super) struct Issued(Arc<AtomicBool>);

impl TokenIssuer {
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
        let issued = match (&self.principal, &self.exchange.tokens) {
            (Ok(principal), Some(rule)) => {
                let issued = rule.issuer.issue(&rule.purpose, principal.as_deref()).await;
                issued.map_err(|error| match error.kind() {
                    StoreErrorKind::Invalid => Refusal::KeyInvalid(KeyError::malformed(
                        "the principal of the token is blank or has a control character in it",
                    )),
                    _ => Refusal::from(&error),
                })
            }
            (Err(refusal), _) => Err(refusal.clone()),
            (_, None) => Err(Refusal::TokenMissing),
        };
        self.issued.0.store(true, Ordering::Relaxed);
        issued.map_err(|refusal| self.exchange.not_issued(self.head.as_deref(), refusal))
    }
}

impl Exchange {
    /// Puts an issuer into the request, if the layer is one for tokens.
    ///
    /// `shown` is the token that the request has spent; a further token is for the same principal.
    pub(super) fn insert_issuer(self: &Arc<Self>, parts: &mut Parts, shown: Option<&PresentedToken>) -> Option<Issued> {
        self.tokens.as_ref()?;
        let principal = match (shown, &self.scoping) {
            (Some(shown), _) => Ok(shown.binding.principal.as_deref().map(ToOwned::to_owned)),
            (None, Scoping::Scope(scope)) => scope.extract(parts, &Bytes::new()),
            (None, _) => Ok(None),
        };
        let issued = Issued::default();
        let head = self.looks_back().then(|| Arc::new(parts.clone()));
        parts.extensions.insert(TokenIssuer { exchange: self.clone(), principal, head, issued: issued.clone() });
        Some(issued)
    }

    /// Returns whether the token of a request was valid when it came, and has expired since.
    pub(super) fn has_expired(&self, asked: &ClaimRequest) -> bool {
        let rule = self.tokens.as_ref().zip(asked.token.as_deref());
        rule.is_some_and(|(rule, token)| rule.issuer.has_expired(token))
    }

    /// Refuses a token that is not valid, with a new one in the answer if its purpose and principal are known.
    ///
    /// The new token is for the page that is shown next. The request is not sent again: the operation may have been
    /// done.
    pub(super) async fn renew<B: Body>(&self, head: &Parts, asked: &ClaimRequest) -> Response<ResponseBody<B>> {
        let mut response = self.refuse(head, Some(&asked.key), &Refusal::TokenInvalid);
        if let (Some(rule), Some(token)) = (&self.tokens, asked.token.as_deref())
            && let Some(fresh) = rule.fresh(token).await
        {
            response.headers_mut().insert(rule.header.clone(), fresh);
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        response
    }

    fn not_issued(&self, head: Option<&Parts>, refusal: Refusal) -> IssueError {
        let response = self.refusal(head, None, &refusal);
        IssueError { refusal, response: Box::new(response) }
    }
}

impl Issued {
    /// Adds `Cache-Control: no-store` to an answer that has a token in it, since it is for one reader.
    pub(super) fn mark(&self, headers: &mut HeaderMap) {
        if self.0.load(Ordering::Relaxed) {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
    }
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenIssuer").field("tokens", &self.exchange.tokens).finish_non_exhaustive()
    }
}

/// The error if no token was issued. It is a response as well: the layer's refusal.
#[derive(Clone, Debug)]
pub struct IssueError {
    refusal: Refusal,
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

impl Error for IssueError {}
