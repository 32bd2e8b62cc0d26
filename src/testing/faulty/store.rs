#![deny(clippy::missing_trait_methods)]

use std::time::Duration;

use crate::store::{
    Claim, Claimant, Claimed, Cursor, Filter, Finished, Issue, Issued, Page, Record, RecordKey, Release, Renewed,
    Settlement, Stats, Store, StoreAdmin, StoreFuture, StoreVerb, support::forward_store,
};

use super::faults::Faults;

/// A store with scripted faults, for tests of what routes do when their store fails.
///
/// It passes calls on to the inner store until a test scripts a fault, through [`faults`](Self::faults):
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{
///     MemoryStore, testing::FaultyStore,
///     store::{Claim, Claimed, RecordKey, Store, StoreAdmin, StoreErrorKind, StoreVerb},
/// };
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const MINUTE: Duration = Duration::from_secs(60);
///
/// let store = FaultyStore::new(MemoryStore::new());
/// let faults = store.faults();
/// // … the store goes into a layer, and the test keeps `faults`.
///
/// let key = RecordKey::new("/orders", None, "7f0c")?;
/// let claim = Claim::new(MINUTE, MINUTE);
///
/// // The next two claims fail; nothing happens in the store.
/// faults.on(StoreVerb::Claim).times(2).fail(StoreErrorKind::Unavailable);
/// assert!(store.claim(&key, &claim).await.is_err());
/// assert!(store.claim(&key, &claim).await.is_err());
/// assert!(store.inspect(&key).await?.is_none());
///
/// // The next one takes effect, but its answer is lost.
/// faults.on(StoreVerb::Claim).once().after_effect().fail(StoreErrorKind::Timeout);
/// assert!(store.claim(&key, &claim).await.is_err());
/// assert!(store.inspect(&key).await?.is_some());
///
/// assert!(matches!(store.claim(&key, &claim).await?, Claimed::Granted(_)));
/// assert_eq!(faults.calls(StoreVerb::Claim), 4);
/// # Ok(())
/// # }
/// ```
///
/// Calls can also be answered late, when the test decides, or never:
///
/// ```
/// # use std::time::Duration;
/// # use tower_idempotency::{
/// #     MemoryStore, testing::FaultyStore,
/// #     store::{Claim, RecordKey, Store, StoreAdmin, StoreErrorKind, StoreVerb},
/// # };
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # const MINUTE: Duration = Duration::from_secs(60);
/// # let store = FaultyStore::new(MemoryStore::new());
/// # let faults = store.faults();
/// # let key = RecordKey::new("/orders", None, "7f0c")?;
/// # let claim = Claim::new(MINUTE, MINUTE);
/// // The answer to a claim is held until the gate opens; the claim itself is not.
/// let gate = faults.on(StoreVerb::Claim).once().after_effect().hold();
/// let held = tokio::spawn({
///     let (store, key, claim) = (store.clone(), key.clone(), claim.clone());
///     async move { store.claim(&key, &claim).await.is_ok() }
/// });
/// gate.reached(1).await;
/// assert!(store.inspect(&key).await?.is_some());
/// gate.open();
/// assert!(held.await?);
///
/// // The third renewal from now on is never answered.
/// faults.on(StoreVerb::Renew).skip(2).once().hang();
/// faults.heal();
///
/// // The store is away until it is healed.
/// faults.on_all().fail(StoreErrorKind::Unavailable);
/// assert!(store.renew(&key, &claim).await.is_err());
/// faults.heal();
/// assert!(store.renew(&key, &claim).await.is_ok());
/// # Ok(())
/// # }
/// ```
///
/// The methods of [`StoreAdmin`] are never struck, so that a test can look at what is there.
#[derive(Clone, Debug)]
pub struct FaultyStore<S> {
    inner: S,
    faults: Faults,
}

impl<S> FaultyStore<S> {
    /// Creates a store without faults in front of `inner`.
    pub fn new(inner: S) -> Self {
        Self { inner, faults: Faults::default() }
    }

    /// Returns the handle that scripts the faults of this store and of its clones.
    #[must_use]
    pub fn faults(&self) -> Faults {
        self.faults.clone()
    }

    /// Returns the store itself, without the faults.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// `call` is a closure because a store may do its work before its future is polled.
    fn inject<'a, T: Send + Unpin + 'a>(
        &self,
        verb: StoreVerb,
        call: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let Some(strike) = self.faults.strike(verb) else { return call() };
        StoreFuture::new(async move {
            if strike.after_effect {
                let answer = call().await;
                strike.kind.apply().await?;
                answer
            } else {
                strike.kind.apply().await?;
                call().await
            }
        })
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        self.inject(StoreVerb::Issue, || self.inner.issue(key, issue))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        self.inject(StoreVerb::Claim, || self.inner.claim(key, claim))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        self.inject(StoreVerb::Renew, || self.inner.renew(key, claim))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        self.inject(StoreVerb::Settle, || self.inner.settle(key, settlement))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.inject(StoreVerb::Release, || self.inner.release(key, release))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        self.inject(StoreVerb::Changed, move || self.inner.changed(key, holder, within))
    }
}

impl<S: StoreAdmin> StoreAdmin for FaultyStore<S> {
    forward_store!([inner] inspect, list, settle_as, release_as, forget, purge, stats);
}
