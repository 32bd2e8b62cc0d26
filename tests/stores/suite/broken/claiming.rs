use std::time::Duration;

use tower_idempotency::{
    fingerprint::Fingerprint,
    store::{Claim, Claimant, Claimed, Granted, Mismatch, Origin, RecordKey, State, StoredRecord},
};

use super::{Broken, Bug, FOR_EVER};

impl Broken {
    pub(super) fn before_claiming(&self, key: &RecordKey, claim: &mut Claim) -> Option<Claimed> {
        const MANY: usize = 50;
        let century = Duration::from_secs(100 * 365 * 24 * 60 * 60);
        if self.has(Bug::RunningEvicted) && self.model.rows().len() > MANY {
            self.model.rows().clear();
        }
        match self.bug {
            Bug::ZeroLeaseForEver if claim.lease.is_zero() => claim.lease = FOR_EVER,
            Bug::LeaseForEver if !claim.lease.is_zero() => claim.lease = FOR_EVER,
            Bug::ZeroHorizonForEver if claim.horizon.is_zero() => claim.horizon = FOR_EVER,
            Bug::NoteCut => claim.note.truncate(65_535),
            Bug::HorizonForEver => claim.horizon = FOR_EVER,
            Bug::DurationsOverflow if claim.lease > century => claim.lease = Duration::ZERO,
            _ => {}
        }
        let Some(row) = self.row(key) else {
            if self.has(Bug::NeverIssuedAccepted) {
                claim.issued = None;
            }
            return None;
        };
        let lapsed = row.lease_ends <= self.model.now();
        let own = row.claimant == claim.claimant;
        match (self.bug, row.state) {
            (Bug::OwnClaimRefused, State::Running) if own => claim.claimant = Claimant::random(),
            (Bug::OwnLapsedClaimTakenOver, State::Running) if own && lapsed => claim.claimant = Claimant::random(),
            (Bug::FingerprintBeforeCaller, _) if !own && row.fingerprint != claim.fingerprint => {
                return Some(Claimed::Mismatch(Mismatch::Fingerprint));
            }
            (Bug::StateBeforeFingerprint, State::Running) if !own && !lapsed => {
                return Some(Claimed::Running { holder: row.claimant, left: Duration::from_millis(1) });
            }
            (Bug::SchemeIgnored, _) => {
                claim.fingerprint = Fingerprint::from_parts(row.fingerprint.scheme(), *claim.fingerprint.digest());
            }
            (Bug::ReplayIgnoresFingerprint, State::Settled) => claim.fingerprint = row.fingerprint,
            (Bug::ReplayIgnoresCaller, State::Settled) => claim.caller = row.caller,
            (Bug::TakeoverOfAnyRequest, State::Running) if lapsed => {
                (claim.fingerprint, claim.caller) = (row.fingerprint, row.caller);
            }
            (Bug::TakeoverKeepsNote, State::Running) if lapsed => claim.note = row.note,
            (Bug::RecordsAtMostOnceIgnored, _) => self.edit(key, |row| row.at_most_once = false),
            (Bug::ClaimsAtMostOnceIgnored, _) => claim.at_most_once = false,
            (Bug::ReleasedKeepsRequest, State::Released) if row.fingerprint != claim.fingerprint => {
                return Some(Claimed::Mismatch(Mismatch::Fingerprint));
            }
            _ => {}
        }
        None
    }

    /// What bends the rules of tokens.
    pub(super) fn before_spending(&self, key: &RecordKey, claim: &mut Claim) -> Option<Claimed> {
        let row = self.row(key)?;
        let binding = |claim: &mut Claim| claim.issued.clone_from(&row.binding);
        match (self.bug, row.state) {
            (Bug::BindingIgnored, _) => binding(claim),
            (Bug::PrincipalFolded, _) => {
                let folded = |text: &str| text.trim_end().to_lowercase();
                if let (Some(mine), Some(its)) = (&mut claim.issued, &row.binding)
                    && mine.principal.as_deref().map(folded) == its.principal.as_deref().map(folded)
                {
                    mine.principal.clone_from(&its.principal);
                }
            }
            (Bug::PrincipalIgnored, _) => {
                if let (Some(mine), Some(its)) = (&mut claim.issued, &row.binding) {
                    mine.principal.clone_from(&its.principal);
                }
            }
            (Bug::StrangerSpends, State::Issued) if claim.issued != row.binding => {
                self.edit(key, |row| row.state = State::Settled);
                return Some(Claimed::Foreign);
            }
            (Bug::UnboundClaimSpends, State::Issued) if claim.issued.is_none() => binding(claim),
            (Bug::AnyRecordIsToken, _) if row.binding.is_none() => binding(claim),
            (Bug::TokenNeverSpent, State::Settled) if row.binding.is_some() => {
                self.edit(key, |row| row.state = State::Issued);
            }
            _ => {}
        }
        None
    }

    /// What bends the comparison of callers, secrets and claimants.
    pub(super) fn before_judging(&self, key: &RecordKey, claim: &mut Claim) -> Option<Claimed> {
        let row = self.row(key)?;
        let own = row.claimant == claim.claimant;
        let released = matches!(row.state, State::Released | State::Issued);
        match self.bug {
            Bug::ReleasedGoesToAnybody if row.state == State::Released => {
                self.edit(key, |row| row.caller = claim.caller);
            }
            Bug::ReleasedTokenGoesToAnybody if row.state == State::Issued => {
                self.edit(key, |row| row.caller = claim.caller);
            }
            Bug::ReleasedOfNobodyIsClosed if released && row.caller != claim.caller => {
                return Some(Claimed::Mismatch(Mismatch::Caller));
            }
            Bug::TraceIsTheFirstClaims => claim.trace = row.trace.or(claim.trace),
            Bug::SecretIgnored => self.edit(key, |row| row.secret = claim.secret),
            Bug::OriginsSecretIgnored => self.edit(key, |row| row.origin.secret = row.secret),
            Bug::LateCopyGranted if released && own => self.edit(key, |row| row.claimant = Claimant::random()),
            _ => {}
        }
        None
    }

    pub(super) fn after_granting(
        &self,
        key: &RecordKey,
        claim: &Claim,
        before: Option<&StoredRecord>,
        mut granted: Granted,
    ) -> Claimed {
        let state = before.map(|row| row.state);
        match self.bug {
            Bug::AttemptsFromZero if granted.attempt > 0 => {
                granted.attempt -= 1;
                self.edit(key, |row| row.attempt = granted.attempt);
            }
            Bug::TakeoverResetsAttempt if granted.takeover => {
                granted.attempt = 1;
                self.edit(key, |row| row.attempt = 1);
            }
            Bug::TakeoverUnsaid => granted.takeover = false,
            Bug::ReleasedIsTakenOver if state == Some(State::Released) => granted.takeover = true,
            Bug::ReleasedOfNobodyStaysSo if state == Some(State::Released) => {
                self.edit(key, |row| row.caller = before.map_or(row.caller, |before| before.caller));
            }
            Bug::NewCallerUnsaid if granted.attempt > 1 => granted.caller_is_new = false,
            Bug::OriginIsTheLastClaims => {
                granted.origin = claim.origin();
                self.edit(key, |row| row.origin = claim.origin());
            }
            Bug::OriginUntold => granted.origin = Origin::NONE,
            Bug::SecretIsTheFirstClaims => {
                self.edit(key, |row| row.secret = before.map_or(row.secret, |before| before.secret));
            }
            Bug::HorizonBeforeLease => {
                let horizon = u64::try_from(claim.horizon.as_millis()).unwrap_or(u64::MAX);
                let expires = self.model.now().saturating_add(horizon);
                self.edit(key, |row| row.expires = expires);
            }
            Bug::HorizonIgnored => self.edit(key, |row| row.expires = row.lease_ends),
            Bug::ClaimedTokenExpires => {
                self.edit(key, |row| row.expires = row.binding.as_ref().map_or(row.expires, |_| row.token_expires));
            }
            _ => {}
        }
        Claimed::Granted(granted)
    }

    pub(super) fn after_claiming(&self, answer: Claimed) -> Claimed {
        match (self.bug, answer) {
            (Bug::LeftIsTooLong, Claimed::Running { holder, left }) => Claimed::Running { holder, left: left * 2 },
            (Bug::HolderIsUnknown, Claimed::Running { left, .. }) => {
                Claimed::Running { holder: Claimant::random(), left }
            }
            (Bug::OriginUntoldToDuplicates, Claimed::Settled(payload, _)) => Claimed::Settled(payload, Origin::NONE),
            (_, answer) => answer,
        }
    }
}
