use std::time::Duration;

use bytes::Bytes;
use tokio::{
    task::yield_now,
    time::{sleep, timeout},
};
use tower_idempotency::store::{
    Caller, Claim, Claimant, Claimed, Finished, Issue, Issued, Origin, RecordKey, Release, Renewed, SecretNumber,
    Settlement, State, Store, StoreFuture, StoredRecord,
};

use super::{Broken, Bug, FOR_EVER, at_once};

impl Store for Broken {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        let (key, mut issue) = (self.key(key), issue.clone());
        match self.bug {
            Bug::IssueOverwrites => drop(self.forget_row(&key)),
            Bug::LifeForEver => issue.lifetime = FOR_EVER,
            Bug::ZeroLifeForEver if issue.lifetime.is_zero() => issue.lifetime = FOR_EVER,
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
                let mut read = self.model.slot(&key);
                yield_now().await;
                let answer = read.claim(claim);
                if read.is_changed() {
                    self.model.write(&key, read);
                }
                Ok(answer)
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
        let told = self
            .before_claiming(&key, &mut claim)
            .or_else(|| self.before_spending(&key, &mut claim))
            .or_else(|| self.before_judging(&key, &mut claim));
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
        let renewed = at_once(self.model.renew(&key, claim));
        if let (Bug::RenewKeepsLength, Some(before)) = (self.bug, row) {
            self.edit(&key, |row| row.lease = before.lease);
        }
        StoreFuture::ready(Ok(renewed))
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
            let held = |row: &StoredRecord| row.state == State::Running && row.claimant == holder;
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
