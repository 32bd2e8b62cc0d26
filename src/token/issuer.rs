#[cfg(feature = "signed-tokens")]
use std::time::SystemTime;
use std::{sync::Arc, time::Duration};

use super::TokenLayer;
use crate::{
    exchange::{Issuer, Token},
    store::Store,
    value::{StoreError, check_name, nonzero},
};
#[cfg(feature = "signed-tokens")]
use crate::{
    exchange::{Signer, WallClock},
    value::SigningKeys,
};

/// Issues tokens, and makes the layers that ask for them: one token, one operation.
///
/// A page asks for a token, its form brings it along, and the first submission spends it. A second one, by a double click
/// or the Back button, is refused, or gets the first one's answer. A submission that fails gives the token back, so that
/// the corrected form can be sent.
///
/// A token is 32 random bytes of the operating system's, as text. The store sees only its SHA-256. It is bound to a
/// purpose and, if there is one, to a principal: what was issued for one action or to one user is of no use for
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
#[derive(Clone, Debug)]
pub struct Tokens {
    issuer: Issuer,
}

impl Tokens {
    /// Tokens whose records are in `store`, good for five minutes.
    pub fn new(store: impl Store) -> Self {
        Self {
            issuer: Issuer {
                store: Arc::new(store),
                life: Duration::from_secs(5 * 60),
                timeout: Duration::from_secs(5),
                signer: None,
            },
        }
    }

    /// Tokens that are signed, good for five minutes. Nothing is in `store` until one is spent.
    ///
    /// However many are issued, the store does not grow. A token is good on every process that has these `keys` and the
    /// same store. Whether it has expired is decided by the clock of the process that is asked, right before the token is
    /// claimed; a clock that is set back goes on for tokens as if it had not been, until the process ends. Once it is spent, that is
    /// remembered for the rest of its life and the [clock skew](Self::clock_skew), whatever
    /// [retention](TokenLayer::retention) the layer has: shorter, it could be spent again; longer, it would be of no use.
    /// A used token is 409 `token-used` for as long as it would have been good, and 403 `token-invalid` after that.
    ///
    /// ```
    /// use tower_idempotency::{MemoryStore, SigningKeys, Tokens};
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

    /// How long a token is good for. Default: five minutes.
    ///
    /// # Panics
    ///
    /// Panics if `life` is zero.
    #[must_use]
    #[track_caller]
    pub fn lifetime(mut self, life: Duration) -> Self {
        let life = nonzero("token life", life);
        self.issuer.life = life;
        self
    }

    /// How long the store may take to issue one. Default: 5 seconds.
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

    /// The most by which the clocks of two processes may differ, for signed tokens. Default: one minute.
    ///
    /// A spent token is remembered for so much longer than it is good, and for half a minute longer at least. Where clocks differ by more, a process whose clock
    /// is behind could accept it once more.
    #[cfg(feature = "signed-tokens")]
    #[cfg_attr(docsrs, doc(cfg(feature = "signed-tokens")))]
    #[must_use]
    pub fn clock_skew(self, skew: Duration) -> Self {
        self.with_signer(|signer| signer.skew = skew)
    }

    /// The clock by which signed tokens expire. Default: [`SystemTime::now`]. This is for tests.
    ///
    /// If it is set back, tokens go by what it showed before and by what Tokio's time has advanced since, as with the system's
    /// clock.
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
    /// A token without a principal serves requests without one. However many are issued, each is good by itself: three
    /// tabs have three. The answer that carries it should be sent with `Cache-Control: no-store`; behind the layer,
    /// [`TokenIssuer`](crate::TokenIssuer) sees to that, and to purpose and principal.
    ///
    /// # Errors
    ///
    /// Returns an error if the store fails or is full, and one of the kind [`Invalid`](crate::StoreErrorKind::Invalid) if
    /// purpose or principal is blank or has a control character in it. A signed token needs no store.
    ///
    /// # Panics
    ///
    /// Panics if the operating system has no source of randomness.
    pub async fn issue(&self, purpose: &str, principal: Option<&str>) -> Result<Token, StoreError> {
        self.issuer.issue(purpose, principal).await
    }

    /// A layer that asks for a token of this purpose.
    ///
    /// # Panics
    ///
    /// Panics if `purpose` is blank or has a control character in it.
    #[track_caller]
    pub fn layer(&self, purpose: impl Into<Arc<str>>) -> TokenLayer {
        let purpose = purpose.into();
        assert!(check_name(&purpose).is_ok(), "{purpose:?} is blank or has a control character in it");
        TokenLayer::new(self.issuer.clone(), purpose)
    }
}
