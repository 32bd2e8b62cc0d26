use std::time::Duration;

use bytes::Bytes;
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};
use tower_idempotency::{
    Fingerprint, Mismatch, RecordKey,
    store::{
        Caller, Claim, Claimant, Claimed, Finished, Granted, Issue, Issued, Origin, Release, Renewed, SecretNumber,
        Settlement, State, Store, StoreFuture,
    },
};

use super::{Broken, Bug, at_once};
use crate::model::Row;

const FOR_EVER: Duration = Duration::from_secs(1_000_000);

impl Store for Broken {
    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        let (key, mut issue) = (self.key(key), issue.clone());
        match self.bug {
            Bug::IssueOverwrites => drop(self.forget_row(&key)),
            Bug::LifeForEver => issue.life = FOR_EVER,
            Bug::ZeroLifeForEver if issue.life.is_zero() => issue.life = FOR_EVER,
            Bug::IssueChecksThenActs if self.row(&key).is_none() => {
                return StoreFuture::new(async move {
                    yield_now().await;
                    self.forget_row(&key);
                    Ok(at_once(self.model.issue(&key, &issue)))
                });
            }
            _ => {}
        }
        StoreFuture::ready(Ok(at_once(self.model.issue(&key, &issue))))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        let key = self.key(key);
        let torn = match self.state(&key) {
            None => self.has(Bug::ClaimChecksThenActs),
            Some(State::Running) => self.has(Bug::TakeoverChecksThenActs),
            Some(State::Released) => self.has(Bug::ReleasedChecksThenActs),
            Some(_) => self.has(Bug::TokenChecksThenActs),
        };
        if torn {
            return StoreFuture::new(async move {
                let verdict = self.model.verdict(&key, claim);
                yield_now().await;
                Ok(self.model.carry_out(verdict, &key, claim))
            });
        }
        if self.has(Bug::ClaimInTwoSteps) {
            return StoreFuture::new(async move {
                let mut first = claim.clone();
                if self.row(&key).is_none() {
                    first.claimant = Claimant::random();
                    drop(at_once(self.model.claim(&key, &first)));
                    yield_now().await;
                    self.edit(&key, |row| row.claimant = claim.claimant);
                }
                Ok(at_once(self.model.claim(&key, claim)))
            });
        }
        let before = self.row(&key);
        let mut claim = claim.clone();
        let told = self.before_claiming(&key, &mut claim).or_else(|| self.before_judging(&key, &mut claim));
        if let Some(answer) = told {
            return StoreFuture::ready(Ok(answer));
        }
        let answer = match at_once(self.model.claim(&key, &claim)) {
            Claimed::Incompatible if self.has(Bug::MissingSecretIsNoRecord) => {
                self.forget_row(&key);
                at_once(self.model.claim(&key, &claim))
            }
            Claimed::Granted(granted) => self.after_granting(&key, &claim, before.as_ref(), granted),
            answer => answer,
        };
        StoreFuture::ready(Ok(self.after_claiming(answer)))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        let key = self.key(key);
        let row = self.row(&key);
        let own = row.as_ref().is_some_and(|row| row.claimant == claim.claimant);
        match self.bug {
            Bug::LateRenewRefused if self.has_lapsed(&key) => return StoreFuture::ready(Ok(Renewed::Lost)),
            Bug::RenewChecksThenActs if own => {
                return StoreFuture::new(async move {
                    yield_now().await;
                    self.edit(&key, |row| row.claimant = claim.claimant);
                    Ok(at_once(self.model.renew(&key, claim)))
                });
            }
            Bug::RenewDoesNothing if own => return StoreFuture::ready(Ok(Renewed::Done)),
            Bug::RenewByAnybody => self.edit(&key, |row| row.claimant = claim.claimant),
            Bug::RenewRevives if own => self.edit(&key, |row| row.state = State::Running),
            Bug::RenewCreates if row.is_none() => drop(at_once(self.model.claim(&key, claim))),
            _ => {}
        }
        StoreFuture::ready(Ok(at_once(self.model.renew(&key, claim))))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        let (key, mut settlement) = (self.key(key), settlement.clone());
        if self.has(Bug::LapsedSettleRefused) && self.has_lapsed(&key) {
            return StoreFuture::ready(Ok(self.refuse(&key)));
        }
        let own = self.row(&key).is_some_and(|row| row.claimant == settlement.claimant);
        if own && (self.has(Bug::SettleChecksThenActs) || self.has(Bug::EndsCheckThenAct)) {
            return StoreFuture::new(async move {
                yield_now().await;
                self.edit(&key, |row| {
                    if self.has(Bug::SettleChecksThenActs) || row.claimant == settlement.claimant {
                        row.claimant = settlement.claimant;
                        row.state = State::Running;
                    }
                });
                Ok(at_once(self.model.settle(&key, &settlement)))
            });
        }
        self.before_settling(&key, &mut settlement);
        let expires = self.row(&key).map(|row| row.expires);
        let answer = at_once(self.model.settle(&key, &settlement));
        match self.bug {
            Bug::NoteLost => self.edit(&key, |row| row.note = Bytes::new()),
            Bug::CallerLost => self.edit(&key, |row| row.caller = Caller::NONE),
            Bug::OriginLost => self.edit(&key, |row| row.origin = Origin::NONE),
            Bug::SecretLost => self.edit(&key, |row| row.secret = SecretNumber::NONE),
            Bug::TraceLost => self.edit(&key, |row| row.trace = None),
            Bug::AttemptLost => self.edit(&key, |row| row.attempt = 1),
            Bug::RetentionIgnored => self.edit(&key, |row| row.expires = expires.unwrap_or(row.expires)),
            _ => {}
        }
        StoreFuture::ready(Ok(match (self.bug, answer) {
            (Bug::SettleTwiceRefused, Finished::AlreadyDone) => self.refuse(&key),
            (Bug::SettleTwiceDone, Finished::AlreadyDone) => Finished::Done,
            (Bug::RefusalSaysNothing, Finished::Refused(_)) => Finished::Refused(None),
            (_, answer) => answer,
        }))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        let (key, mut release) = (self.key(key), release.clone());
        let row = self.row(&key);
        let own = row.as_ref().is_some_and(|row| row.claimant == release.claimant);
        match self.bug {
            Bug::LapsedReleaseRefused if self.has_lapsed(&key) => return StoreFuture::ready(Ok(self.refuse(&key))),
            Bug::ReleaseByAnybody => release.claimant = row.as_ref().map_or(release.claimant, |row| row.claimant),
            Bug::ReleaseRevives if own => self.edit(&key, |row| row.state = State::Running),
            Bug::KeepForEver => release.keep = FOR_EVER,
            Bug::ZeroKeepForEver if release.keep.is_zero() => release.keep = FOR_EVER,
            Bug::IssuedMayBeEnded => self.edit(&key, |row| {
                row.state = State::Running;
                row.claimant = release.claimant;
            }),
            _ => {}
        }
        if let Some(answer) = self.before_undoing(&key, &mut release) {
            return StoreFuture::ready(Ok(answer));
        }
        let answer = at_once(self.model.release(&key, &release));
        self.after_undoing(&key, row.as_ref(), &release, &answer);
        let later = self.model.now().saturating_add(u64::try_from(release.keep.as_millis()).unwrap_or(u64::MAX));
        match self.bug {
            Bug::ReleaseForgets if matches!(answer, Finished::Done) => drop(self.forget_row(&key)),
            Bug::ReleasedTokenIsNone => self.edit(&key, |row| row.state = State::Released),
            Bug::ReleasedTokenProlonged => self.edit(&key, |row| row.expires = later),
            _ => {}
        }
        StoreFuture::ready(Ok(match (self.bug, answer) {
            (Bug::ReleaseTwiceRefused, Finished::AlreadyDone) => self.refuse(&key),
            (Bug::UndoTwiceRefused, Finished::AlreadyDone) if release.undo => self.refuse(&key),
            (_, answer) => answer,
        }))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        let seen = self.row(key);
        let first = self.waited.lock().expect("no verb panics").insert(key.clone());
        let woken = async move {
            let mut changes = self.model.changes();
            let held = |row: &crate::model::Row| row.state == State::Running && row.claimant == holder;
            match self.bug {
                Bug::EarlierChangeMissed if !seen.as_ref().is_some_and(held) => std::future::pending().await,
                Bug::UnknownKeyWaitedFor if seen.is_none() => std::future::pending().await,
                Bug::TakeoverUnheard if seen.as_ref().is_some_and(held) => {
                    while self.state(key) == Some(State::Running) && changes.changed().await.is_ok() {}
                }
                Bug::UndoUnheard => {
                    while self.state(key).is_none_or(|state| state == State::Running) && changes.changed().await.is_ok()
                    {
                    }
                }
                Bug::OneWakes if !first => std::future::pending().await,
                Bug::OtherKeysWake => return drop(changes.changed().await),
                Bug::NobodyWaits => return,
                Bug::RenewalWakes | Bug::LapseWakes => {
                    let lease = seen.as_ref().map(|row| row.lease_ends);
                    while self.row(key).as_ref().is_some_and(held) {
                        let renewed = self.row(key).map(|row| row.lease_ends) != lease;
                        let lapsed = self.has_lapsed(key);
                        if (renewed && self.has(Bug::RenewalWakes)) || (lapsed && self.has(Bug::LapseWakes)) {
                            return;
                        }
                        sleep(Duration::from_millis(10)).await;
                    }
                }
                _ => {}
            }
            let within = if self.has(Bug::DeadlineIgnored) { FOR_EVER } else { within };
            drop(self.model.changed(key, holder, within).await);
        };
        StoreFuture::new(async move {
            let within = if self.has(Bug::DeadlineIgnored) { FOR_EVER } else { within };
            let _ = timeout(within, woken).await;
            Ok(())
        })
    }
}

impl Broken {
    fn before_claiming(&self, key: &RecordKey, claim: &mut Claim) -> Option<Claimed> {
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
        let lapsed = row.lapsed(self.model.now());
        let own = row.claimant == claim.claimant;
        let binding = |claim: &mut Claim| claim.issued.clone_from(&row.binding);
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
    fn before_judging(&self, key: &RecordKey, claim: &mut Claim) -> Option<Claimed> {
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

    fn after_granting(&self, key: &RecordKey, claim: &Claim, before: Option<&Row>, mut granted: Granted) -> Claimed {
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

    fn after_claiming(&self, answer: Claimed) -> Claimed {
        match (self.bug, answer) {
            (Bug::LeftIsTooLong, Claimed::Running { holder, left }) => Claimed::Running { holder, left: left * 2 },
            (Bug::HolderIsUnknown, Claimed::Running { left, .. }) => {
                Claimed::Running { holder: Claimant::random(), left }
            }
            (_, answer) => answer,
        }
    }

    fn before_undoing(&self, key: &RecordKey, release: &mut Release) -> Option<Finished> {
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

    fn after_undoing(&self, key: &RecordKey, before: Option<&Row>, release: &Release, answer: &Finished) {
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

    fn before_settling(&self, key: &RecordKey, settlement: &mut Settlement) {
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
}
