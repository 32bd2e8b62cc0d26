//! The steps of a request that concern tokens: an issuer for its handler, and a new token for one that has expired.
//!
//! The rule of a token is in `crate::token`; this file connects it with a request.
//!
//! The issuer in a request's extensions holds the layer (`IssuerContext`), so that a token that cannot be issued is
//! refused in the layer's own form. `has_expired` is asked right before the claim, after the body was read: a body that
//! is held back gains no time.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, header::CACHE_CONTROL, request::Parts};
use http_body::Body;

use super::{Exchange, KeyedRequest, RequestContext, Scoping};
use crate::{
    body::ResponseBody,
    token::{IssuedFlag, IssuerContext, PresentedToken, TokenIssuer, TokenRule},
    value::{Observers, Refusal},
};

impl Exchange {
    /// Puts an issuer into the request, if the layer is one for tokens.
    ///
    /// `shown` is the token that the request has spent; a further token is for the same principal.
    ///
    /// The answer of a handler that has issued a token is marked `no-store` by the flag that is returned.
    pub(super) fn insert_issuer(
        self: &Arc<Self>,
        parts: &mut Parts,
        shown: Option<&PresentedToken>,
    ) -> Option<IssuedFlag> {
        self.tokens.as_ref()?;
        let principal = match (shown, &self.scoping) {
            (Some(shown), _) => Ok(shown.binding.principal.as_deref().map(ToOwned::to_owned)),
            (None, Scoping::Scope(scope)) => scope.extract(parts, &Bytes::new()),
            (None, _) => Ok(None),
        };
        let head = self.looks_back().then(|| Arc::new(parts.clone()));
        let (issuer, flag) = TokenIssuer::new(self.clone(), principal, head);
        parts.extensions.insert(issuer);
        Some(flag)
    }

    /// Returns whether the token of a request was valid when it came, and has expired since.
    pub(super) fn has_expired(&self, asked: &KeyedRequest) -> bool {
        let rule = self.tokens.as_ref().zip(asked.token.as_deref());
        rule.is_some_and(|(rule, token)| rule.issuer.has_expired(token))
    }

    /// Refuses a token that is not valid, with a new one in the answer if its purpose and principal are known.
    ///
    /// The new token is for the page that is shown next. The request is not sent again: the operation may have been
    /// done.
    pub(super) async fn renew<B: Body>(&self, context: RequestContext<'_>) -> Response<ResponseBody<B>> {
        let mut response = self.refuse(context.head, Some(context.key), &Refusal::TokenInvalid);
        if let (Some(rule), Some(token)) = (&self.tokens, context.token)
            && let Some(fresh) = rule.fresh(token, &self.engine.observers).await
        {
            response.headers_mut().insert(rule.header.clone(), fresh);
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        response
    }
}

impl IssuerContext for Exchange {
    fn rule(&self) -> Option<&TokenRule> {
        self.tokens.as_ref()
    }

    fn observers(&self) -> &Observers {
        &self.engine.observers
    }

    fn refusal_response(&self, head: Option<&Parts>, refusal: &Refusal) -> Response<Bytes> {
        self.refusal(head, None, refusal)
    }
}
