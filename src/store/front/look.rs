use std::time::Duration;

use tokio::time::timeout;

use crate::{
    store::{Claimed, Operator, StoreFuture},
    value::{Claim, Head, Issue, Record, RecordKey, Settlement, State, StoreError, StoreErrorKind, Verdict, judge},
};

use super::Front;

impl<F: Operator, S: Operator> Front<F, S> {
    /// What the front says to a claim, if it is one of a settled record that it has.
    pub(super) async fn look(&self, key: &RecordKey, claim: &Claim) -> Option<Claimed> {
        if self.rest.is_on() {
            return None;
        }
        let record = self.in_time(self.before.inspect(key)).await??;
        if record.state != State::Settled {
            return None;
        }
        match judge(Some(&head(&record)), claim, 0) {
            Verdict::Settled => Some(Claimed::Settled(record.payload)),
            Verdict::Mismatch(what) => Some(Claimed::Mismatch(what)),
            Verdict::Foreign => Some(Claimed::Foreign),
            _ => None,
        }
    }

    /// Copies the record that a claim behind found settled. One caller at a time does so for a key.
    ///
    /// No copy may outlive its record, nor `at_most`. Its life counts from when the front settles it, and that is at most
    /// three limits after the record was read: one for reading it, one for the answer to the front's claim, and one in
    /// which that claim can be settled at all.
    pub(super) async fn keep(&self, key: &RecordKey, claimed: &Claimed) {
        if !matches!(claimed, Claimed::Settled(_)) || self.rest.is_on() {
            return;
        }
        let Some(_turn) = self.filling.enter(key) else { return };
        let Ok(Ok(Some(record))) = timeout(self.limit, self.behind.inspect(key)).await else { return };
        let life = self.at_most.min(record.expires_in).saturating_sub(self.limit.saturating_mul(3));
        if record.state == State::Settled && !life.is_zero() {
            self.in_time(StoreFuture::new(self.copy(key, &record, life))).await;
        }
    }

    async fn copy(&self, key: &RecordKey, record: &Record, life: Duration) -> Result<(), StoreError> {
        if let Some(binding) = &record.binding {
            self.before.issue(key, &Issue::new(binding.clone(), life)).await?;
        }
        let claim = Claim {
            fingerprint: record.fingerprint,
            caller: record.caller,
            issued: record.binding.clone(),
            ..Claim::new(self.limit, self.limit)
        };
        if let Claimed::Granted(_) = self.before.claim(key, &claim).await? {
            let settlement = Settlement::new(claim.claimant, record.payload.clone(), life);
            self.before.settle(key, &settlement).await?;
        }
        Ok(())
    }

    /// Drops the copy of a record that was changed behind by an operator.
    pub(super) async fn drop_copy(&self, key: &RecordKey) {
        if !self.rest.is_on() {
            self.in_time(self.before.forget(key)).await;
        }
    }

    /// The front's answer, if it comes in time.
    pub(super) async fn in_time<T: Unpin>(&self, answer: StoreFuture<'_, T>) -> Option<T> {
        match timeout(self.limit, answer).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) => {
                // The others say nothing about other records.
                if !matches!(error.kind(), StoreErrorKind::Full | StoreErrorKind::Corrupt) {
                    self.rest.begin(&error);
                }
                None
            }
            Err(_) => {
                self.rest.begin(&"no answer in time");
                None
            }
        }
    }
}

/// The head of a record at the moment when it was read.
fn head(record: &Record) -> Head<'_> {
    Head {
        fingerprint: record.fingerprint,
        caller: record.caller,
        at_most_once: record.at_most_once,
        takeover: record.takeover,
        lease_ends: millis(record.lease_left),
        expires: millis(record.expires_in),
        binding: record.binding.as_ref(),
        ..Head::new(record.state, record.claimant, record.attempt)
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
