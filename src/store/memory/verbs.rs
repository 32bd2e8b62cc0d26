//! The verbs of a store on a locked shard.
//!
//! Each finds the record, asks a rule of `value::rules` what follows, and writes that. None of them decides anything
//! itself, except that a record whose new expiry is not in the future is removed at once and needs no room.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::{Notify, futures::OwnedNotified};

use crate::{
    store::{Claimed, Finished, Issued, Renewed},
    value::{Behalf, Claim, Claimant, Ending, Issue, Record, Release, Settlement, Verdict, judge, undone},
};

use super::{
    full::Full,
    record::{RecordDraft, RecordView, later},
    sharding::{HashedKey, ShardGuard},
};

/// The operations of a store, each on a locked shard.
impl ShardGuard<'_> {
    /// Issues a token, unless its key has a record.
    pub(super) fn issue(&mut self, hashed: &HashedKey<'_>, issue: &Issue) -> Result<Issued, Full> {
        if self.find(hashed).is_some() {
            return Ok(Issued::Exists);
        }
        let expires = later(self.now, issue.lifetime);
        let mut record = RecordDraft::issued(hashed.namespace, hashed.key, issue.binding.clone(), expires, self.now);
        self.insert(hashed.hash, &mut record)?;
        Ok(Issued::Done)
    }

    /// Claims a key: `judge` decides, by the record that exists.
    pub(super) fn claim(&mut self, hashed: &HashedKey<'_>, claim: &Claim) -> Result<Claimed, Full> {
        let now = self.now;
        let found = self.find(hashed);
        let before = found.map(|slot| self.record(slot));
        let verdict = judge(before.as_ref().map(RecordView::head).as_ref(), claim, now);
        let Verdict::Grant(granted) = verdict else {
            return Ok(Claimed::from_verdict(verdict, || before.as_ref().and_then(RecordView::payload)));
        };
        let mut record = RecordDraft::granted(hashed.namespace, hashed.key, before.as_ref(), claim, &granted, now);
        match found {
            Some(slot) => self.replace(slot, &mut record)?,
            None => self.insert(hashed.hash, &mut record)?,
        }
        Ok(Claimed::Granted(granted))
    }

    /// Renews the lease of the claimant that holds the key, however late it comes.
    pub(super) fn renew(&mut self, hashed: &HashedKey<'_>, claim: &Claim) -> Renewed {
        let now = self.now;
        match self.find(hashed).filter(|&slot| self.runs_under(slot, claim.claimant)) {
            Some(slot) => {
                self.update(slot, 0, |records| records.renew(slot, claim, now));
                Renewed::Done
            }
            None => Renewed::Lost,
        }
    }

    /// Ends a claim with an answer, by its claimant or on its behalf.
    pub(super) fn settle(
        &mut self,
        hashed: &HashedKey<'_>,
        behalf: Behalf,
        settlement: &Settlement,
    ) -> Result<Finished, Full> {
        let Some(slot) = self.find(hashed) else { return Ok(Finished::Refused(None)) };
        match self.record(slot).hold(self.now).settle(settlement.claimant, behalf) {
            Ending::Write => self.write_settled(slot, settlement),
            Ending::AlreadyDone => Ok(Finished::AlreadyDone),
            Ending::Refused => Ok(self.refuse(slot)),
        }
    }

    /// Ends a claim without an answer, by its claimant or on its behalf.
    pub(super) fn release(&mut self, hashed: &HashedKey<'_>, behalf: Behalf, release: &Release) -> Finished {
        let Some(slot) = self.find(hashed) else { return Finished::Refused(None) };
        match self.record(slot).hold(self.now).release(release.claimant, behalf) {
            Ending::Write => self.write_released(slot, release),
            Ending::AlreadyDone => Finished::AlreadyDone,
            Ending::Refused => self.refuse(slot),
        }
    }

    /// Removes a record of any state; returns whether there was one.
    pub(super) fn forget(&mut self, hashed: &HashedKey<'_>) -> bool {
        let found = self.find(hashed);
        if let Some(slot) = found {
            self.remove(slot);
        }
        found.is_some()
    }

    /// Returns the record for operators.
    pub(super) fn inspect(&mut self, hashed: &HashedKey<'_>) -> Option<Record> {
        let slot = self.find(hashed)?;
        Some(self.record(slot).record(self.now))
    }

    /// Joins the waiters of a record that is running under `holder`; also returns how long the record exists.
    pub(super) fn watch(
        &mut self,
        hashed: &HashedKey<'_>,
        holder: Claimant,
    ) -> Option<(u32, Duration, (Arc<Notify>, OwnedNotified))> {
        let slot = self.find(hashed).filter(|&slot| self.runs_under(slot, holder))?;
        let shard = &mut *self.shard;
        shard.records.set_waited_for(slot, true);
        let left = Duration::from_millis(shard.record(slot).expires() - self.now);
        Some((slot, left, shard.waiters.join(slot)))
    }

    /// Writes the answer. Room for it is reserved first, so that a failure changes nothing.
    fn write_settled(&mut self, slot: u32, settlement: &Settlement) -> Result<Finished, Full> {
        let (now, growth) = (self.now, settlement.payload.as_ref().map_or(0, Bytes::len));
        // A record that expires at once needs no room.
        if later(now, settlement.retention) <= now {
            self.remove(slot);
            return Ok(Finished::Done);
        }
        self.reserve_bytes(growth)?;
        self.update(slot, growth, |records| records.settle(slot, settlement, now));
        Ok(Finished::Done)
    }

    /// Writes the release, or what undoing leaves.
    fn write_released(&mut self, slot: u32, release: &Release) -> Finished {
        let now = self.now;
        let undone = release.undo.then(|| undone(&self.record(slot).head()));
        if matches!(undone, Some(None)) {
            self.remove(slot);
            return Finished::Done;
        }
        self.update(slot, 0, |records| records.release(slot, release, undone.flatten().as_ref(), now));
        Finished::Done
    }

    /// Returns the answer to a claimant that no longer holds the key: what the record says.
    fn refuse(&self, slot: u32) -> Finished {
        Finished::Refused(Some(Box::new(self.record(slot).record(self.now))))
    }

    /// Returns whether the record is running under this claimant.
    fn runs_under(&self, slot: u32, claimant: Claimant) -> bool {
        self.record(slot).hold(self.now).runs_under(claimant)
    }
}
