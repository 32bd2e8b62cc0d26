use bytes::Bytes;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{
    store::{Claimed, StoreAdmin, StoreFuture},
    value::{Claim, Claimant, Head, Issue, RecordKey, Settlement, State, StoreError, StoreErrorKind, Verdict, judge},
};

use super::CachedStore;

impl<F: StoreAdmin, S: StoreAdmin> CachedStore<F, S> {
    /// Returns the answer to a claim from the cache, if it has a copy of the settled record.
    pub(super) async fn look(&self, key: &RecordKey, claim: &Claim) -> Option<Claimed> {
        if self.rest.is_on() {
            return None;
        }
        let record = self.in_time(self.before.inspect(key)).await??;
        if record.state != State::Settled {
            return None;
        }
        match judge(Some(&Head::from(&record)), claim, 0) {
            Verdict::Settled(origin) => Some(Claimed::Settled(record.payload, origin)),
            Verdict::Mismatch(what) => Some(Claimed::Mismatch(what)),
            Verdict::Foreign => Some(Claimed::Foreign),
            _ => None,
        }
    }

    /// Copies the record that a claim found settled in the store behind. For each key, one caller at a time does so.
    ///
    /// A copy may outlive neither its record nor `at_most`, however long this process is suspended between two steps.
    /// So the key is claimed in the cache first, for one limit of the cache's clock; then the record is read; then that
    /// claim is settled, which fails once the limit is over. What was read is less than one limit old by then, so one
    /// limit is subtracted.
    pub(super) async fn keep(&self, key: &RecordKey, claim: &Claim, claimed: &Claimed) {
        // A copy's origin is that of the claim that makes it.
        let is_told = matches!(claimed, Claimed::Settled(_, origin) if *origin == claim.origin());
        if !is_told || self.rest.is_on() || self.at_most <= self.limit {
            return;
        }
        let Some(_turn) = self.filling.enter(key) else { return };
        let end = Instant::now() + self.limit;
        let copy = self.copy_of(claim);
        let claimed = self.in_time(StoreFuture::new(self.claim_before(key, &copy))).await;
        if !matches!(claimed, Some(Claimed::Granted(_))) {
            return;
        }
        let Ok(Ok(Some(record))) = timeout_at(end, self.behind.inspect(key)).await else { return };
        // The record may be another one by now.
        let life = self.at_most.min(record.expires_in).saturating_sub(self.limit);
        if life.is_zero() || judge(Some(&Head::from(&record)), claim, 0) != Verdict::Settled(claim.origin()) {
            return;
        }
        let settlement = Settlement::new(copy.claimant, record.payload, life);
        if let Ok(Err(error)) = timeout_at(end, self.before.settle(key, &settlement)).await {
            self.rest_after(&error);
        }
    }

    /// Returns the claim in the cache on the key of a duplicate, for as long as a copy may take.
    fn copy_of(&self, claim: &Claim) -> Claim {
        Claim {
            claimant: Claimant::random(),
            lease: self.limit,
            horizon: self.limit,
            at_most_once: false,
            note: Bytes::new(),
            ..claim.clone()
        }
    }

    async fn claim_before(&self, key: &RecordKey, copy: &Claim) -> Result<Claimed, StoreError> {
        if let Some(binding) = &copy.issued {
            self.before.issue(key, &Issue::new(binding.clone(), self.limit)).await?;
        }
        self.before.claim(key, copy).await
    }

    /// Removes the copy of a record that an operator has changed in the store behind.
    pub(super) async fn drop_copy(&self, key: &RecordKey) {
        if !self.rest.is_on() {
            self.in_time(self.before.forget(key)).await;
        }
    }

    /// Returns the cache's answer, if it comes in time.
    pub(super) async fn in_time<T: Unpin>(&self, answer: StoreFuture<'_, T>) -> Option<T> {
        match timeout(self.limit, answer).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                self.rest_after(&error);
                None
            }
            Err(_) => {
                self.rest.begin(&"no answer in time");
                None
            }
        }
    }

    fn rest_after(&self, error: &StoreError) {
        // These errors concern one record only.
        if !matches!(error.kind(), StoreErrorKind::Full | StoreErrorKind::Corrupt) {
            self.rest.begin(error);
        }
    }
}
