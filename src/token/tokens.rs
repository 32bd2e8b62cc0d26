#[cfg(feature = "signed-tokens")]
use std::time::SystemTime;
use std::{sync::Arc, time::Duration};

use super::{Issuer, Token};
#[cfg(feature = "signed-tokens")]
use super::{Signer, SigningKeys, WallClock};
use crate::{
    store::Store,
    value::{Observer, Observers, StoreError, nonzero},
};

/// The issuer of tokens and the source of the layers that require them: one token, one operation.
///
/// A page requests a token, its form contains the token, and the first submission spends the token. A second
/// submission, by a double click or the Back button, is refused, or receives the first one's answer. A submission that
/// fails releases the token, so that the corrected form can be sent.
///
/// A token is 32 random bytes from the operating system, as text. The store sees only its SHA-256. A token is bound to
/// a purpose and, if there is one, to a principal: a token for one action or one user is not valid for another, and
/// another user's try does not spend it. A value that was never issued is never accepted.
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
/// A token does not protect against forged requests (CSRF). CSRF protection checks whether the *session* meant the
/// request; a token checks whether the request was made before. A form may need both.
#[derive(Clone, Debug)]
pub struct Tokens {
    issuer: Issuer,
}

impl Tokens {
    /// Creates an issuer whose tokens have their records in `store` and are valid for five minutes.
    pub fn new(store: impl Store) -> Self {
        Self {
            issuer: Issuer {
                store: Arc::new(store),
                lifetime: Duration::from_secs(5 * 60),
                timeout: Duration::from_secs(5),
                signer: None,
                observers: Observers::default(),
            },
        }
    }

    /// Creates an issuer of signed tokens that are valid for five minutes. `store` has no record of a token until it is
    /// spent.
    ///
    /// The store does not grow with the number of issued tokens. A token is valid on every process that has these
    /// `keys` and the same store. The process that receives a token decides by its own clock, right before the claim,
    /// whether the token has expired. If that clock is set back, tokens expire as if it had not been, until the process
    /// ends. A spent token is remembered for the rest of its lifetime and the [clock skew](Self::clock_skew), whatever
    /// [retention](crate::TokenLayer::retention) the layer has: with a shorter time it could be spent again, and a
    /// longer time would be of no use. A used token receives 409 `token-used` for as long as it would have been valid,
    /// and 403 `token-invalid` after that.
    ///
    /// ```
    /// use tower_idempotency::{MemoryStore, Tokens, token::SigningKeys};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let secret = [7; 32];
    /// let tokens = Tokens::signed(MemoryStore::new(), SigningKeys::new(secret)?);
    /// let token = tokens.issue("checkout", Some("ann")).await?;
    /// assert_eq!(token.as_str().len(), 108);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "signed-tokens")]
    #[cfg_attr(docsrs, doc(cfg(feature = "signed-tokens")))]
    pub fn signed(store: impl Store, keys: SigningKeys) -> Self {
        let mut tokens = Self::new(store);
        let skew = Duration::from_secs(60);
        tokens.issuer.signer = Some(Signer { keys, skew, clock: WallClock::system() });
        tokens
    }

    /// Sets how long a token is valid. Default: five minutes.
    ///
    /// # Panics
    ///
    /// Panics if `lifetime` is zero.
    #[must_use]
    #[track_caller]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        let lifetime = nonzero("token lifetime", lifetime);
        self.issuer.lifetime = lifetime;
        self
    }

    /// Sets how long the store may take to issue a token. Default: 5 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `timeout` is zero.
    #[must_use]
    #[track_caller]
    pub fn store_timeout(mut self, timeout: Duration) -> Self {
        let timeout = nonzero("store timeout", timeout);
        self.issuer.timeout = timeout;
        self
    }

    /// Adds an observer, which receives [`Event::TokenIssued`](crate::Event::TokenIssued) and
    /// [`TokenNotIssued`](crate::Event::TokenNotIssued), and the events of the layers that are made of this afterwards.
    /// Several calls add up.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.issuer.observers.add(observer);
        self
    }

    /// Sets by how much the clocks of two processes may differ, for signed tokens. Default: one minute.
    ///
    /// A spent token is remembered for this much longer than it is valid, and for at least half a minute longer. If
    /// clocks differ by more, a process whose clock is behind could accept the token once more.
    #[cfg(feature = "signed-tokens")]
    #[cfg_attr(docsrs, doc(cfg(feature = "signed-tokens")))]
    #[must_use]
    pub fn clock_skew(self, skew: Duration) -> Self {
        self.with_signer(|signer| signer.skew = skew)
    }

    /// Sets the clock by which signed tokens expire. Default: [`SystemTime::now`]. This is for tests.
    ///
    /// If the clock is set back, tokens expire by the time that it showed before, plus the time by which Tokio's clock
    /// has advanced since, as with the system's clock.
    #[cfg(feature = "signed-tokens")]
    #[cfg_attr(docsrs, doc(cfg(feature = "signed-tokens")))]
    #[must_use]
    pub fn clock(self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.with_signer(|signer| signer.clock = WallClock::new(clock))
    }

    #[cfg(feature = "signed-tokens")]
    fn with_signer(mut self, change: impl FnOnce(&mut Signer)) -> Self {
        self.issuer.signer.as_mut().map(change);
        self
    }

    /// Issues a token for a purpose, and to a principal if there is one.
    ///
    /// A token without a principal is valid for requests without one. Each issued token is valid by itself: three tabs
    /// have three tokens. Send the answer that contains a token with `Cache-Control: no-store`; behind the layer,
    /// [`TokenIssuer`](super::TokenIssuer) sets that header, the purpose and the principal.
    ///
    /// # Errors
    ///
    /// Returns an error if the store fails or is full. Returns an error of the kind
    /// [`Invalid`](crate::store::StoreErrorKind::Invalid) if the purpose or the principal is blank or contains a
    /// control character. A signed token needs no store.
    ///
    /// # Panics
    ///
    /// Panics if the operating system has no source of randomness.
    pub async fn issue(&self, purpose: &str, principal: Option<&str>) -> Result<Token, StoreError> {
        self.issuer.issue(purpose, principal, &self.issuer.observers).await
    }

    /// Returns what makes the tokens, for the layers that require them.
    pub(crate) fn issuer(&self) -> &Issuer {
        &self.issuer
    }
}
