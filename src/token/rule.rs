use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use tokio::time::Instant;

use super::{Signer, base64url};
use crate::{
    extract::key::KeyExtractor,
    store::{Issued, Store},
    value::{
        Binding, Digest, Event, Issue, Observers, RecordKey, Refusal, StoreError, StoreErrorKind, check_name,
        random_bytes,
    },
};

/// The tokens that a layer accepts, where a request has them, and how a new one is issued.
#[derive(Clone, Debug)]
pub(crate) struct TokenRule {
    pub(crate) purpose: Arc<str>,
    pub(crate) header: HeaderName,
    pub(crate) field: KeyExtractor,
    pub(crate) issuer: Issuer,
    /// The longest prefix of a multipart body that is searched for the token, if the rest streams.
    #[cfg(feature = "form")]
    pub(crate) prefix: Option<usize>,
    /// A failed answer brings a new token that replaces the one of the request.
    pub(crate) replaces: bool,
}

/// Issues tokens, and verifies those that are signed.
#[derive(Clone)]
pub(crate) struct Issuer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) lifetime: Duration,
    pub(crate) timeout: Duration,
    pub(crate) signer: Option<Signer>,
    pub(crate) observers: Observers,
}

/// A token of a request. Its form, signature, purpose and principal are right; only the store knows whether it was
/// issued and not used.
pub(crate) struct PresentedToken {
    text: Box<str>,
    pub(crate) binding: Binding,
    /// When it expires, if it is signed. The record of a stored token has its own expiry.
    pub(crate) signed: Option<u64>,
}

impl Issuer {
    /// Issues a token, and reports it to `observers`.
    pub(crate) async fn issue(
        &self,
        purpose: &str,
        principal: Option<&str>,
        observers: &Observers,
    ) -> Result<Token, StoreError> {
        let start = Instant::now();
        let issued = self.try_issue(purpose, principal).await;
        observers.report(&match &issued {
            Ok(_) => Event::TokenIssued { purpose, took: start.elapsed() },
            Err(error) => Event::TokenNotIssued { purpose, error },
        });
        #[cfg(feature = "tracing")]
        if let Err(error) = &issued {
            tracing::warn!(purpose, error = error as &dyn std::error::Error, "a token was not issued");
        }
        issued
    }

    async fn try_issue(&self, purpose: &str, principal: Option<&str>) -> Result<Token, StoreError> {
        for (what, text) in [("purpose", Some(purpose)), ("principal", principal)] {
            if text.is_some_and(|text| check_name(text).is_err()) {
                let message = format!("a token's {what} is blank or has a control character in it");
                return Err(StoreError::new(StoreErrorKind::Invalid, message).without_effect());
            }
        }
        let bytes = random_bytes();
        let binding = Binding::new(purpose, principal);
        let text = self.text(&binding, &bytes, self.expiry());
        match self.put(&text, binding).await? {
            Issued::Done => Ok(Token { text, lifetime: self.lifetime }),
            Issued::Exists => Err(StoreError::new(StoreErrorKind::Other, "a token was drawn twice")),
        }
    }

    /// Returns when a token expires that is made now; any number if its record says so.
    fn expiry(&self) -> u64 {
        self.signer.as_ref().map_or(0, |signer| signer.expiry(self.lifetime))
    }

    fn text(&self, binding: &Binding, bytes: &[u8; 32], expires: u64) -> String {
        match &self.signer {
            Some(signer) => signer.sign(binding, expires, bytes),
            None => base64url::encode(bytes),
        }
    }

    /// Puts a token's record into the store, unless its signature takes the place of that.
    async fn put(&self, text: &str, binding: Binding) -> Result<Issued, StoreError> {
        if self.signer.is_some() {
            return Ok(Issued::Done);
        }
        let (key, issue) = (token_key(&binding.purpose, text.as_bytes()), Issue::new(binding.stored(), self.lifetime));
        match tokio::time::timeout(self.timeout, self.store.issue(&key, &issue)).await {
            Ok(issued) => issued,
            Err(_) => Err(StoreError::new(StoreErrorKind::Timeout, "the store did not answer in time")),
        }
    }

    /// Returns whether a signed token has expired. That a stored one has is for the store to say.
    pub(crate) fn has_expired(&self, token: &PresentedToken) -> bool {
        self.signer.as_ref().zip(token.signed).is_some_and(|(signer, expires)| signer.has_expired(expires))
    }

    /// Returns how long it has to be remembered what became of a signed token: as long as anybody could accept it.
    pub(crate) fn memory(&self, token: &PresentedToken) -> Option<Duration> {
        Some(self.signer.as_ref()?.memory(token.signed?))
    }
}

impl TokenRule {
    /// The token for what it is, with the name of its record, which a signed one has by its nonce. It may have expired:
    /// that is looked at right before it is claimed.
    pub(crate) fn look_at(&self, text: &str, principal: Option<&str>) -> Result<(RecordKey, PresentedToken), Refusal> {
        if principal.is_some_and(|principal| check_name(principal).is_err()) {
            return Err(Refusal::TokenInvalid);
        }
        let binding = Binding::new(&self.purpose, principal);
        let (key, signed) = match &self.issuer.signer {
            Some(signer) => {
                let (expires, nonce) = signer.verify(text, &binding).ok_or(Refusal::TokenInvalid)?;
                (token_key(&self.purpose, &nonce), Some(expires))
            }
            None => (token_key(&self.purpose, text.as_bytes()), None),
        };
        Ok((key, PresentedToken { text: text.into(), binding, signed }))
    }

    /// Issues a new token in reply to one that is no longer valid, if the principal is known: by the signature of the
    /// expired token, or by the request. Returns `None` if the store issues nothing.
    pub(crate) async fn fresh(&self, shown: &PresentedToken, observers: &Observers) -> Option<HeaderValue> {
        let known = shown.signed.is_some() || (shown.binding.principal.is_some() && is_well_formed(&shown.text));
        let Binding { purpose, principal, .. } = &shown.binding;
        if !known {
            return None;
        }
        let token = self.issuer.issue(purpose, principal.as_deref(), observers).await.ok()?;
        HeaderValue::from_maybe_shared(Bytes::from(token.text)).ok()
    }

    /// Issues the token that replaces `shown`, and returns it with what has to be kept to derive it again; `None` if
    /// the store does not take it now.
    ///
    /// It is derived from `shown`, so that the kept answer need not contain it: a reader of the store cannot spend it,
    /// and a client that has `shown` may have its successor too.
    pub(crate) async fn successor(&self, shown: &PresentedToken) -> Option<(HeaderValue, HeaderValue)> {
        let expires = self.issuer.expiry();
        let text = self.issuer.text(&shown.binding, &shown.next(), expires);
        // A try before this one may have come so far.
        let (Issued::Done | Issued::Exists) = self.issuer.put(&text, shown.binding.clone()).await.ok()?;
        Some((HeaderValue::from_maybe_shared(Bytes::from(text)).ok()?, HeaderValue::from(expires)))
    }

    /// Derives the successor again, from what was kept of it.
    pub(crate) fn successor_again(&self, shown: &PresentedToken, kept: &HeaderValue) -> Option<HeaderValue> {
        let text = self.issuer.text(&shown.binding, &shown.next(), kept.to_str().ok()?.parse().ok()?);
        HeaderValue::from_maybe_shared(Bytes::from(text)).ok()
    }
}

impl PresentedToken {
    fn next(&self) -> [u8; 32] {
        let mut digest = Digest::new();
        digest.part(b"tower-idempotency: the token after this one");
        digest.part(self.text.as_bytes());
        digest.finish()
    }
}

impl fmt::Debug for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Issuer");
        shown.field("lifetime", &self.lifetime).field("timeout", &self.timeout).field("signer", &self.signer);
        shown.finish_non_exhaustive()
    }
}

/// A token that was issued. `Debug` does not show its text, since anyone who has it can spend the token.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    text: String,
    lifetime: Duration,
}

impl Token {
    /// Returns the text: 43 characters, 108 if it is signed, that need no escaping in a header, a form or a page.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns how long the token is valid, from its issue on.
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("lifetime", &self.lifetime).finish_non_exhaustive()
    }
}

/// Returns whether a text has the form of a stored token.
fn is_well_formed(token: &str) -> bool {
    token.len() == 43 && token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Names a token in a store: by a digest, so that nobody who reads the store can spend it.
fn token_key(purpose: &str, token: &[u8]) -> RecordKey {
    let mut digest = Digest::new();
    digest.part(token);
    RecordKey::token(purpose, &digest.finish())
}
