//! A store with a cache in front of it.
//!
//! - `lookup`: answers a duplicate from a copy, and makes copies. The order of its steps keeps a copy from outliving its
//!   record.
//! - `in_flight_fills`: the keys that are being copied, so that many duplicates make one copy. `circuit_breaker`: rests a cache that failed.
//! - `admin`, `transaction`: the other two traits, passed on; what changes a record drops its copy.
//!
//! Only `judge` on a copy of a *settled* record is ever used; everything else is asked of the inner store. The lock of
//! `fills` is held for one operation on its set; `breaker` is an atomic. The lint `missing_trait_methods` is denied, so
//! that a verb that is added to a trait is passed on here too.

#![deny(clippy::missing_trait_methods)]

mod admin;
mod circuit_breaker;
mod in_flight_fills;
mod lookup;
mod transaction;

use std::{fmt, sync::Arc, time::Duration};

use crate::value::{Claim, Claimant, Issue, RecordKey, Release, Settlement};

use super::{Claimed, Finished, Issued, Renewed, Store, StoreAdmin, StoreFuture, support::forward_store};

use self::{circuit_breaker::CircuitBreaker, in_flight_fills::InFlightFills};

/// The default of `max_age`: how long the cache answers for a record.
const MAX_AGE: Duration = Duration::from_secs(10);
/// The default of `cache_timeout`: how long the cache may take for a step.
const CACHE_TIMEOUT: Duration = Duration::from_millis(50);

/// A store with a cache for keys that are repeated often: memory in front of Redis, Redis in front of a database.
///
/// The cache holds copies of settled records and answers their duplicates: with the kept answer, or with a mismatch if
/// the request is a different one. The store behind decides everything else. A record is copied when it is first
/// replayed, so a key that is never repeated costs the cache one read and no room.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{
///     MemoryStore,
///     store::{CachedStore, Claim, Claimed, Origin, RecordKey, Settlement, Store, StoreAdmin},
/// };
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache = MemoryStore::builder().capacity(10_000).build();
/// let inner = MemoryStore::new(); // or a server
/// let store = CachedStore::new(cache.clone(), inner).max_age(Duration::from_secs(30));
///
/// let key = RecordKey::new("/orders", None, "7f0c")?;
/// let (lease, day) = (Duration::from_secs(30), Duration::from_secs(86_400));
/// let first = Claim::new(lease, day);
/// assert!(matches!(store.claim(&key, &first).await?, Claimed::Granted(_)));
/// store.settle(&key, &Settlement::new(first.claimant, Some("paid".into()), day)).await?;
/// assert_eq!(cache.stats().await?.settled, 0);
///
/// // The first duplicate goes through to the inner store; those that follow do not.
/// for _ in 0..100 {
///     assert_eq!(store.claim(&key, &Claim::new(lease, day)).await?, Claimed::Settled(Some("paid".into()), Origin::NONE));
///     assert_eq!(cache.stats().await?.settled, 1);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # What it promises
///
/// - The store behind always decides which request may run. The cache judges by the same function,
///   [`judge`](super::judge), and its result is used only if it finds a settled record.
/// - A copy expires before its record does, even if the process is suspended while it copies. The cache's clock and the
///   one behind are never compared; both have to run at the same speed.
/// - A cache that fails, or does not answer within its [time](Self::cache_timeout), is skipped, and not used for the
///   second that follows. Only an event of `tracing` reports it.
/// - A cache without room makes no more copies until some expire.
///
/// # What it does not
///
/// - **A copy may outlive its record if that is forgotten**: by an operator, or by a server that loses data. A record
///   that is forgotten through this store is removed from its cache too, unless it is being copied at that moment;
///   caches of other processes are not notified. They go on replaying for up to [`max_age`](Self::max_age).
/// - **It does not make first requests faster**: each of them reads the cache and finds nothing.
///
/// # Namespaces
///
/// If several stores share a cache, such as one Redis in front of two databases, their records must be kept apart: give
/// each pair a namespace, the same in front and behind.
///
/// # Cancellation
///
/// If a call is dropped while it copies, it leaves a claim in the cache, which is not a copy and expires after
/// `cache_timeout`.
#[derive(Clone)]
pub struct CachedStore<F, S> {
    cache: F,
    inner: S,
    max_age: Duration,
    cache_timeout: Duration,
    breaker: Arc<CircuitBreaker>,
    fills: Arc<InFlightFills>,
}

impl<F, S> CachedStore<F, S> {
    /// Creates a store that uses `cache` as a cache for `inner`.
    pub fn new(cache: F, inner: S) -> Self {
        Self {
            cache,
            inner,
            max_age: MAX_AGE,
            cache_timeout: CACHE_TIMEOUT,
            breaker: Arc::default(),
            fills: Arc::default(),
        }
    }

    /// Sets how long the cache answers for a record before the store behind is asked again. Default: ten seconds.
    ///
    /// A record that was forgotten behind may still be replayed for this long. If nobody forgets records, and the store
    /// behind cannot lose them, there is no upper limit. One [`cache_timeout`](Self::cache_timeout) is subtracted, for
    /// a copy that may be under way; if nothing is left, nothing is copied.
    #[must_use]
    pub fn max_age(self, age: Duration) -> Self {
        Self { max_age: age, ..self }
    }

    /// Sets how long a claim waits for the cache, and again for a record to be copied into it. Default: 50
    /// milliseconds.
    ///
    /// A copy that cannot be made in this time, reading the record behind included, is not made.
    #[must_use]
    pub fn cache_timeout(self, cache_timeout: Duration) -> Self {
        Self { cache_timeout, ..self }
    }
}

impl<F: fmt::Debug, S: fmt::Debug> fmt::Debug for CachedStore<F, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedStore")
            .field("cache", &self.cache)
            .field("inner", &self.inner)
            .field("max_age", &self.max_age)
            .field("cache_timeout", &self.cache_timeout)
            .finish_non_exhaustive()
    }
}

impl<F: StoreAdmin, S: StoreAdmin> Store for CachedStore<F, S> {
    fn is_immediate(&self) -> bool {
        false
    }

    forward_store!([inner] issue, renew, settle, release, changed);

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        StoreFuture::new(async move {
            if let Some(answer) = self.lookup(key, claim).await {
                return Ok(answer);
            }
            let claimed = self.inner.claim(key, claim).await?;
            self.fill(key, claim, &claimed).await;
            Ok(claimed)
        })
    }
}
