use bytes::Bytes;
use tower_idempotency::store::{Caller, Claim, Finished, RecordKey, Release, Settlement, State, Store, StoredRecord};

use super::{Broken, Bug, FOR_EVER, at_once};

impl Broken {
    pub(super) fn before_settling(&self, key: &RecordKey, settlement: &mut Settlement) {
        let row = self.row(key);
        let own = row.as_ref().is_some_and(|row| row.claimant == settlement.claimant);
        match self.bug {
            Bug::PayloadCut => {
                settlement.payload = settlement.payload.take().map(|all| all.slice(..all.len().min(65_535)));
            }
            Bug::PayloadAsText => {
                let text = |bytes: Bytes| String::from_utf8_lossy(&bytes).into_owned().into();
                settlement.payload = settlement.payload.take().map(text);
            }
            Bug::EmptyIsTombstone => settlement.payload = settlement.payload.take().filter(|all| !all.is_empty()),
            Bug::TombstoneIsEmpty => settlement.payload = Some(settlement.payload.take().unwrap_or_default()),
            Bug::RetentionForEver => settlement.retention = FOR_EVER,
            Bug::ZeroRetentionForEver if settlement.retention.is_zero() => settlement.retention = FOR_EVER,
            Bug::SettleByAnybody => self.edit(key, |row| row.claimant = settlement.claimant),
            Bug::SettleLate => self.edit(key, |row| {
                if row.takeover && row.state == State::Running {
                    row.claimant = settlement.claimant;
                }
            }),
            Bug::SettleRevives if own => self.edit(key, |row| row.state = State::Running),
            Bug::SettleCreates if row.is_none() => {
                let mut claim = Claim::new(FOR_EVER, FOR_EVER);
                claim.claimant = settlement.claimant;
                drop(at_once(self.model.claim(key, &claim)));
            }
            _ => {}
        }
    }

    pub(super) fn before_undoing(&self, key: &RecordKey, release: &mut Release) -> Option<Finished> {
        if !release.undo {
            return None;
        }
        let row = self.row(key)?;
        let own = row.claimant == release.claimant;
        match self.bug {
            Bug::UndoIsRelease => release.undo = false,
            Bug::LapsedUndoRefused if self.has_lapsed(key) => return Some(self.refuse(key)),
            Bug::UndoByAnybody => release.claimant = row.claimant,
            Bug::UndoRevives if own => self.edit(key, |row| row.state = State::Running),
            Bug::ZeroUndoForEver if release.keep.is_zero() => release.keep = FOR_EVER,
            Bug::UndoForEver => release.keep = FOR_EVER,
            _ => {}
        }
        None
    }

    pub(super) fn after_undoing(
        &self,
        key: &RecordKey,
        before: Option<&StoredRecord>,
        release: &Release,
        answer: &Finished,
    ) {
        let Some(before) = before.filter(|_| release.undo) else { return };
        let done = matches!(answer, Finished::Done);
        match self.bug {
            Bug::UndoForgets if done => drop(self.forget_row(key)),
            Bug::UndoKeepsAttempt => self.edit(key, |row| row.attempt = before.attempt),
            Bug::UndoTwiceCounts if !done => self.edit(key, |row| row.attempt = row.attempt.saturating_sub(1)),
            Bug::UndoKeepsCaller => self.edit(key, |row| row.caller = before.caller),
            Bug::UndoLosesCaller => self.edit(key, |row| row.caller = Caller::NONE),
            Bug::UndoneTakeoverRuns if before.takeover => self.edit(key, |row| row.state = State::Running),
            Bug::UndoneTokenIsGone if before.binding.is_some() => drop(self.forget_row(key)),
            Bug::UndoneTokenKeepsOrigin => self.edit(key, |row| row.origin = before.origin),
            _ => {}
        }
    }
}
