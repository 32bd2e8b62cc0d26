use std::{fmt, sync::Arc, time::Duration};

use super::TokenLayer;
use crate::{
    engine::Engine,
    exchange::token_key,
    store::{Issued, Store},
    value::{Binding, Issue, StoreError, StoreErrorKind},
};

/// Issues tokens, and makes the layers that ask for them: one token, one operation.
///
/// A page asks for a token, its form brings it along, and the first submission spends it. A second one, by a double click
/// or the Back button, is refused, or gets the first one's answer. A submission that fails gives the token back, so that
/// the corrected form can be sent.
///
/// A token is 32 random bytes of the operating system's, as text. The store sees only its SHA-256. It is bound to a
/// purpose and, where there is one, to a principal: what was issued for one action or to one user is of no use for
/// another, and a stranger's try does not spend it. What was never issued is never accepted.
///
/// ```
/// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
/// use tower::ServiceExt;
/// use tower_idempotency::{MemoryStore, Tokens};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let tokens = Tokens::new(MemoryStore::new());
/// let app: Router = Router::new().route("/checkout", post(|| async { "ordered" }).layer(tokens.layer("checkout")));
///
/// // Where the page is made:
/// let token = tokens.issue("checkout", None).await?;
///
/// let submit = || Request::post("/checkout").header("X-Submit-Token", token.as_str()).body(Body::empty()).unwrap();
/// assert_eq!(app.clone().oneshot(submit()).await?.status(), StatusCode::OK);
/// assert_eq!(app.oneshot(submit()).await?.status(), StatusCode::CONFLICT);
/// # Ok(())
/// # }
/// ```
///
/// This is no protection against forged requests (CSRF): that asks whether the *session* meant the request, this whether
/// it was made before. A form may need both.
#[derive(Clone)]
pub struct Tokens {
    pub(super) store: Arc<dyn Store>,
    life: Duration,
    timeout: Duration,
}

impl Tokens {
    /// Tokens whose records are in `store`, good for five minutes.
    pub fn new(store: impl Store) -> Self {
        let Engine { store, store_timeout, .. } = Engine::new(store);
        Self { store, life: Duration::from_secs(5 * 60), timeout: store_timeout }
    }

    /// How long a token is good for. Default: five minutes.
    #[must_use]
    pub fn life(self, life: Duration) -> Self {
        Self { life, ..self }
    }

    /// How long the store may take to issue one. Default: 5 seconds.
    #[must_use]
    pub fn store_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Issues a token for a purpose, and to a principal where there is one.
    ///
    /// A token without a principal serves requests without one. However many are issued, each is good by itself: three
    /// tabs have three. The answer that carries it should be sent with `Cache-Control: no-store`.
    ///
    /// # Errors
    ///
    /// Where the store fails, or is full.
    ///
    /// # Panics
    ///
    /// Where the operating system has no source of randomness.
    pub async fn issue(&self, purpose: &str, principal: Option<&str>) -> Result<Token, StoreError> {
        let mut bytes = [0; 32];
        if let Err(error) = getrandom::fill(&mut bytes) {
            panic!("no source of randomness: {error}");
        }
        let token = Token { text: base64url(&bytes), life: self.life };
        let issue = Issue::new(Binding::new(purpose, principal), self.life);
        let key = token_key(purpose, &token.text);
        match tokio::time::timeout(self.timeout, self.store.issue(&key, &issue)).await {
            Ok(Ok(Issued::Done)) => Ok(token),
            Ok(Ok(Issued::Exists)) => Err(StoreError::new(StoreErrorKind::Other, "a token was drawn twice")),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(StoreError::new(StoreErrorKind::Timeout, "the store did not answer in time")),
        }
    }

    /// A layer that asks for a token of this purpose.
    pub fn layer(&self, purpose: impl Into<Arc<str>>) -> TokenLayer {
        TokenLayer::new(self.store.clone(), purpose.into())
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("life", &self.life).field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

/// A token that was issued. Who has its text can spend it, so `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    text: String,
    life: Duration,
}

impl Token {
    /// The text, 43 characters that need no escaping in a header, a form or a URL.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How long it is good for, from its issue on.
    #[must_use]
    pub fn life(&self) -> Duration {
        self.life
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("life", &self.life).finish_non_exhaustive()
    }
}

/// RFC 4648, section 5, without padding.
fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_u32, |word, &byte| (word << 8) | u32::from(byte)) << (8 * (3 - chunk.len()));
        for place in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(word >> (18 - 6 * place)) as usize & 63]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4648, section 10, in the other alphabet and without padding.
    #[test]
    fn text() {
        for (bytes, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE")]
        {
            assert_eq!(base64url(bytes.as_bytes()), text);
        }
        assert_eq!(base64url(&[0xfb, 0xff]), "-_8");
    }
}
