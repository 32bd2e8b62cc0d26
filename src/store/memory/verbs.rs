use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::{Notify, futures::OwnedNotified};

use crate::{
    store::{Claimed, Finished, Issued, Renewed},
    value::{Claim, Claimant, Issue, Record, Release, Settlement, State, Verdict, judge},
};

use super::{
    moment::later,
    room::Full,
    shard::{Entry, Name, Turn},
};

/// The operations of a store, each on a locked shard.
impl Turn<'_> {
    pub(super) fn issue(&mut self, name: &Name<'_>, issue: &Issue) -> Result<Issued, Full> {
        if self.find(name).is_some() {
            return Ok(Issued::Exists);
        }
        let expires = later(self.now, issue.lifetime);
        self.insert(name, |entry| entry.issue(issue.binding.clone(), expires))?;
        Ok(Issued::Done)
    }

    pub(super) fn claim(&mut self, name: &Name<'_>, claim: &Claim) -> Result<Claimed, Full> {
        let now = self.now;
        let found = self.find(name);
        let existing = found.map(|slot| &self.shard.slab[slot]);
        let verdict = judge(existing.map(Entry::head).as_ref(), claim, now);
        if let Verdict::Grant(granted) = verdict {
            match found {
                Some(slot) => {
                    let growth = self.shard.slab[slot].growth(claim, &granted);
                    self.rerun(slot, growth)?;
                    self.change(slot, growth, |entry| entry.grant(claim, &granted, now));
                }
                None => self.insert(name, |entry| drop(entry.grant(claim, &granted, now)))?,
            }
            return Ok(Claimed::Granted(granted));
        }
        Ok(Claimed::from_verdict(verdict, || existing.and_then(Entry::payload)))
    }

    pub(super) fn renew(&mut self, name: &Name<'_>, claim: &Claim) -> Renewed {
        let now = self.now;
        match self.find(name).filter(|&slot| self.runs_under(slot, claim.claimant)) {
            Some(slot) => {
                self.change(slot, 0, |entry| {
                    entry.renew(claim, now);
                    None
                });
                Renewed::Done
            }
            None => Renewed::Lost,
        }
    }

    pub(super) fn settle(&mut self, name: &Name<'_>, settlement: &Settlement) -> Result<Finished, Full> {
        let Some(slot) = self.find(name) else { return Ok(Finished::Refused(None)) };
        if self.runs_under(slot, settlement.claimant) {
            return self.write_settled(slot, settlement);
        }
        let entry = &self.shard.slab[slot];
        if entry.state() == State::Settled && entry.claimant() == settlement.claimant {
            return Ok(Finished::AlreadyDone);
        }
        Ok(self.refuse(slot))
    }

    pub(super) fn release(&mut self, name: &Name<'_>, release: &Release) -> Finished {
        let Some(slot) = self.find(name) else { return Finished::Refused(None) };
        if self.runs_under(slot, release.claimant) {
            return self.write_released(slot, release);
        }
        if self.is_released_by(slot, release.claimant) {
            return Finished::AlreadyDone;
        }
        self.refuse(slot)
    }

    pub(super) fn settle_as(
        &mut self,
        name: &Name<'_>,
        seen: Claimant,
        settlement: &Settlement,
    ) -> Result<Finished, Full> {
        let Some(slot) = self.find(name) else { return Ok(Finished::Refused(None)) };
        if self.is_abandoned_by(slot, seen) {
            return self.write_settled(slot, settlement);
        }
        let entry = &self.shard.slab[slot];
        let own = entry.state() == State::Settled && entry.claimant() == settlement.claimant;
        // If the reconciliation uses the claimant that was seen, the runner may have settled by itself.
        if own && settlement.claimant != seen {
            return Ok(Finished::AlreadyDone);
        }
        Ok(self.refuse(slot))
    }

    pub(super) fn release_as(&mut self, name: &Name<'_>, seen: Claimant, release: &Release) -> Finished {
        let Some(slot) = self.find(name) else { return Finished::Refused(None) };
        if self.is_abandoned_by(slot, seen) {
            return self.write_released(slot, release);
        }
        if release.claimant != seen && self.is_released_by(slot, release.claimant) {
            return Finished::AlreadyDone;
        }
        self.refuse(slot)
    }

    pub(super) fn forget(&mut self, name: &Name<'_>) -> bool {
        let found = self.find(name);
        if let Some(slot) = found {
            self.remove(slot);
        }
        found.is_some()
    }

    pub(super) fn inspect(&mut self, name: &Name<'_>) -> Option<Record> {
        let slot = self.find(name)?;
        Some(self.shard.slab[slot].record(self.now))
    }

    /// Joins the waiters of a record that is running under `holder`; also returns how long the record exists.
    pub(super) fn watch(
        &mut self,
        name: &Name<'_>,
        holder: Claimant,
    ) -> Option<(u32, Duration, (Arc<Notify>, OwnedNotified))> {
        let slot = self.find(name).filter(|&slot| self.runs_under(slot, holder))?;
        let shard = &mut *self.shard;
        let entry = &mut shard.slab[slot];
        entry.set_waited_for(true);
        Some((slot, Duration::from_millis(entry.expires() - self.now), shard.waiters.enter(slot)))
    }

    fn write_settled(&mut self, slot: u32, settlement: &Settlement) -> Result<Finished, Full> {
        let (now, growth) = (self.now, settlement.payload.as_ref().map_or(0, Bytes::len));
        // A record that expires at once needs no room.
        if later(now, settlement.retention) <= now {
            self.remove(slot);
            return Ok(Finished::Done);
        }
        self.grow(growth)?;
        self.change(slot, growth, |entry| {
            entry.settle(settlement.claimant, settlement.payload.as_ref(), settlement.retention, now);
            None
        });
        Ok(Finished::Done)
    }

    fn write_released(&mut self, slot: u32, release: &Release) -> Finished {
        let now = self.now;
        if release.undo && self.shard.slab[slot].began_with_its_claim() {
            self.remove(slot);
            return Finished::Done;
        }
        self.change(slot, 0, |entry| {
            if release.undo {
                entry.undo(release.claimant, release.keep, now);
            } else {
                entry.release(release.claimant, release.keep, now);
            }
            None
        });
        Finished::Done
    }

    fn refuse(&self, slot: u32) -> Finished {
        Finished::Refused(Some(Box::new(self.shard.slab[slot].record(self.now))))
    }

    fn runs_under(&self, slot: u32, claimant: Claimant) -> bool {
        let entry = &self.shard.slab[slot];
        entry.state() == State::Running && entry.claimant() == claimant
    }

    fn is_abandoned_by(&self, slot: u32, seen: Claimant) -> bool {
        self.runs_under(slot, seen) && self.shard.slab[slot].is_abandoned(self.now)
    }

    /// Returns whether this claimant has released the record. A released token is issued again, but still names the
    /// claimant.
    fn is_released_by(&self, slot: u32, claimant: Claimant) -> bool {
        let entry = &self.shard.slab[slot];
        let released = matches!(entry.state(), State::Issued | State::Released);
        released && entry.claimant() == claimant && claimant != Claimant::NONE
    }
}
