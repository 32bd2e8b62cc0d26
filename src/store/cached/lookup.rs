//! Answering from the cache, and filling it.
//!
//! A copy must expire before its record does, however long this process is suspended between two steps. So the time
//! that filling may take is bounded by a claim in the cache, by the cache's own clock, and subtracted from the life of
//! the copy.

use bytes::Bytes;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    store::{Claimed, StoreAdmin, StoreFuture},
    value::{
        Claim, Claimant, Issue, RecordHead, RecordKey, Settlement, State, StoreError, StoreErrorKind, Verdict, judge,
    },
};

use super::CachedStore;

impl<F: StoreAdmin, S: StoreAdmin> CachedStore<F, S> {
    /// Returns the answer to a claim from the cache, if it has a copy of the settled record.
    pub(super) async fn lookup(&self, key: &RecordKey, claim: &Claim) -> Option<Claimed> {
        if self.breaker.is_open() {
            return None;
        }
        let record = self.with_timeout(self.cache.inspect(key)).await??;
        if record.state != State::Settled {
            return None;
        }
        match judge(Some(&RecordHead::from(&record)), claim, 0) {
            Verdict::Settled(origin) => Some(Claimed::Settled(record.payload, origin)),
            Verdict::Mismatch(what) => Some(Claimed::Mismatch(what)),
            Verdict::Foreign => Some(Claimed::Foreign),
            _ => None,
        }
    }

    /// Copies the record that a claim found settled in the store behind. For each key, one caller at a time does so.
    ///
    /// A copy may outlive neither its record nor `max_age`, however long this process is suspended between two steps.
    /// So the key is claimed in the cache first, for one limit of the cache's clock; then the record is read; then that
    /// claim is settled, which fails once the limit is over. What was read is less than one limit old by then, so one
    /// limit is subtracted.
    pub(super) async fn fill(&self, key: &RecordKey, claim: &Claim, claimed: &Claimed) {
        // A copy's origin is that of the claim that makes it.
        let is_replay = matches!(claimed, Claimed::Settled(_, origin) if *origin == claim.origin());
        if !is_replay || self.breaker.is_open() || self.max_age <= self.cache_timeout {
            return;
        }
        let Some(_guard) = self.fills.begin(key) else { return };
        let end = Instant::now() + self.cache_timeout;
        let copy = self.fill_claim(claim);
        let claimed = self.with_timeout(StoreFuture::new(self.claim_in_cache(key, &copy))).await;
        if !matches!(claimed, Some(Claimed::Granted(_))) {
            return;
        }
        let Ok(Ok(Some(record))) = timeout_at(end, self.inner.inspect(key)).await else { return };
        // The record may be another one by now.
        let life = self.max_age.min(record.expires_in).saturating_sub(self.cache_timeout);
        if life.is_zero() || judge(Some(&RecordHead::from(&record)), claim, 0) != Verdict::Settled(claim.origin()) {
            return;
        }
        let settlement = Settlement::new(copy.claimant, record.payload, life);
        if let Ok(Err(error)) = timeout_at(end, self.cache.settle(key, &settlement)).await {
            self.trip_on(&error);
        }
    }

    /// Returns the claim in the cache on the key of a duplicate, for as long as a copy may take.
    fn fill_claim(&self, claim: &Claim) -> Claim {
        Claim {
            claimant: Claimant::random(),
            lease: self.cache_timeout,
            horizon: self.cache_timeout,
            at_most_once: false,
            note: Bytes::new(),
            ..claim.clone()
        }
    }

    async fn claim_in_cache(&self, key: &RecordKey, copy: &Claim) -> Result<Claimed, StoreError> {
        if let Some(binding) = &copy.issued {
            self.cache.issue(key, &Issue::new(binding.clone(), self.cache_timeout)).await?;
        }
        self.cache.claim(key, copy).await
    }

    /// Removes the copy of a record that an operator has changed in the store behind.
    pub(super) async fn evict(&self, key: &RecordKey) {
        if !self.breaker.is_open() {
            self.with_timeout(self.cache.forget(key)).await;
        }
    }

    /// Returns the cache's answer, if it comes in time.
    pub(super) async fn with_timeout<T: Unpin>(&self, answer: StoreFuture<'_, T>) -> Option<T> {
        match timeout(self.cache_timeout, answer).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                self.trip_on(&error);
                None
            }
            Err(_) => {
                self.breaker.trip(&"no answer in time");
                None
            }
        }
    }

    fn trip_on(&self, error: &StoreError) {
        // These errors concern one record only.
        if !matches!(error.kind(), StoreErrorKind::Full | StoreErrorKind::Corrupt) {
            self.breaker.trip(error);
        }
    }
}
