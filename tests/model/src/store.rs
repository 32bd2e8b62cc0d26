//! One message at the store, which applies the crate's rules to the bytes of the record.

use std::time::Duration;

use bytes::Bytes;
use tower_idempotency::{
    fingerprint::Fingerprint,
    store::{
        Caller, Claim, Claimant, Claimed, Finished, RecordSlot, Release, Renewed, Settlement, State as RecordState,
    },
};

use crate::{
    config::{Broken, Config, Mode},
    state::{Message, Number, State, Verb},
};

/// Ticks of a lease and of a retention.
pub(crate) const LEASE: u8 = 2;
pub(crate) const RETENTION: u8 = 6;

/// The mark of a failure that is kept.
pub(crate) const FAILED: u8 = 0x80;

/// The first moment of the store. At zero, a lease could seem to have lapsed before it began.
const EPOCH: u64 = 1_000_000;

/// What the store answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reply {
    Granted,
    Running,
    Settled(Number),
    Mismatch,
    OutcomeUnknown,
    Done,
    /// The claim is another's; what is settled, if anything is.
    Refused(Option<Number>),
}

fn ticks(ticks: u8) -> Duration {
    Duration::from_secs(ticks.into())
}

fn claimant(number: Number) -> Claimant {
    Claimant::from_bytes([number + 1; 16])
}

fn number_of(claimant: Claimant) -> Number {
    claimant.to_bytes()[0] - 1
}

fn value(payload: Option<&Bytes>) -> Number {
    payload.and_then(|payload| payload.first().copied()).unwrap_or(u8::MAX)
}

impl State {
    pub(crate) fn slot(&self, now: u8) -> RecordSlot {
        let now = EPOCH + 1000 * u64::from(now);
        RecordSlot::from_bytes(self.record.as_deref(), now).expect("the model has written it")
    }

    /// Returns what is settled, if anything is.
    pub(crate) fn settled(&self) -> Option<Number> {
        let slot = self.slot(self.now);
        let record = slot.record().filter(|record| record.state == RecordState::Settled)?;
        Some(value(record.payload.as_ref()))
    }

    /// Returns who holds the record, and whether that claim has lapsed.
    pub(crate) fn holder(&self) -> Option<(Number, bool)> {
        let record = self.slot(self.now).inspect().expect("it is of this version")?;
        (record.state == RecordState::Running).then(|| (number_of(record.claimant), record.is_abandoned()))
    }

    fn write(&mut self, slot: &RecordSlot) {
        if slot.is_changed() {
            self.before = self.record.clone();
            self.record = slot.to_bytes();
        }
    }

    fn claim_of(config: &Config, number: Number) -> Claim {
        let (caller, content) = config.requests[usize::from(number)];
        let lease = if config.mode == Mode::Transaction { 100 } else { LEASE };
        let mut claim = Claim::new(ticks(lease), ticks(RETENTION));
        claim.claimant = claimant(number);
        claim.at_most_once = config.mode == Mode::AtMostOnce && !config.is(Broken::AtMostOnceIsForgotten);
        let content = if config.is(Broken::ContentIsIgnored) { 1 } else { content };
        claim.fingerprint = Fingerprint::from_parts(1, [content; 32]);
        let caller = if config.is(Broken::CallerIsIgnored) { 1 } else { caller };
        claim.caller = Caller::from_parts(1, [caller; 16]);
        claim
    }

    /// Handles a message.
    pub(crate) fn handle(&mut self, config: &Config, Message { from, verb, .. }: Message) -> Reply {
        let ahead = match verb {
            Verb::Claim if config.is(Broken::TakeoverTooEarly) && self.record.is_some() => LEASE,
            _ if config.is(Broken::ClockIsAhead) && from > 0 => LEASE,
            _ => 0,
        };
        let mut slot = self.slot(self.now + ahead);
        let holder = slot.record().filter(|record| record.state == RecordState::Running).map(|record| record.claimant);
        let is_settled = slot.record().is_some_and(|record| record.state == RecordState::Settled);
        let reply = match verb {
            Verb::Claim => {
                if is_settled && config.is(Broken::SettledIsClaimed) {
                    slot.forget();
                }
                claimed(slot.claim(&Self::claim_of(config, from)))
            }
            Verb::Renew => {
                let mut claim = Self::claim_of(config, from);
                if config.is(Broken::AnybodyRenews) {
                    claim.claimant = holder.unwrap_or(claim.claimant);
                }
                match slot.renew(&claim) {
                    Renewed::Done => Reply::Done,
                    _ => Reply::Refused(None),
                }
            }
            Verb::Settle => {
                if is_settled && config.is(Broken::SettledTwice) {
                    slot.forget();
                    let _ = slot.claim(&Self::claim_of(config, from));
                }
                let by = holder.filter(|_| config.is(Broken::AnybodySettles)).unwrap_or(claimant(from));
                let failed = self.has_failed(from) && !config.is(Broken::FailureIsSettled);
                let payload = Bytes::from(vec![if failed { from | FAILED } else { from }]);
                let retention = if config.is(Broken::RetentionIsShort) { 1 } else { RETENTION };
                finished(slot.settle(&Settlement::new(by, Some(payload), ticks(retention))))
            }
            Verb::Release | Verb::Undo => {
                let by = holder.filter(|_| config.is(Broken::AnybodyReleases)).unwrap_or(claimant(from));
                let mut release = Release::new(by, ticks(RETENTION));
                release.undo = verb == Verb::Undo;
                let reply = finished(slot.release(&release));
                if verb == Verb::Release && config.is(Broken::ReleaseForgetsTheCaller) {
                    slot.forget();
                }
                reply
            }
        };
        self.write(&slot);
        reply
    }

    /// Undoes a claim whose transaction has ended with its process.
    pub(crate) fn roll_back(&mut self, number: Number) {
        let mut slot = self.slot(self.now);
        let _ = slot.release(&Release::undo(claimant(number), ticks(RETENTION)));
        self.write(&slot);
    }

    /// Settles an abandoned record for the run that was seen, if that has acted, and releases it otherwise.
    pub(crate) fn end_for(&mut self, seen: Number) {
        let mut slot = self.slot(self.now);
        let own = claimant(0x70);
        if self.seen.acted.contains(&seen) {
            let settlement = Settlement::new(own, Some(Bytes::from(vec![seen])), ticks(RETENTION));
            let _ = slot.settle_as(claimant(seen), &settlement);
        } else {
            let _ = slot.release_as(claimant(seen), &Release::new(own, ticks(RETENTION)));
        }
        self.write(&slot);
    }

    /// Settles a record although its claim lives, as nobody may.
    pub(crate) fn settle_live(&mut self, holder: Number) {
        let mut slot = self.slot(self.now);
        let settlement = Settlement::new(claimant(holder), Some(Bytes::from(vec![holder])), ticks(RETENTION));
        let _ = slot.settle(&settlement);
        self.write(&slot);
    }
}

fn claimed(claimed: Claimed) -> Reply {
    match claimed {
        Claimed::Granted(_) => Reply::Granted,
        Claimed::Running { .. } => Reply::Running,
        Claimed::Settled(payload, _) => Reply::Settled(value(payload.as_ref())),
        Claimed::Mismatch(_) => Reply::Mismatch,
        Claimed::OutcomeUnknown => Reply::OutcomeUnknown,
        // A copy of a claim that was withdrawn.
        _ => Reply::Refused(None),
    }
}

fn finished(finished: Finished) -> Reply {
    match finished {
        Finished::Done | Finished::AlreadyDone => Reply::Done,
        Finished::Refused(record) => {
            let settled = record.filter(|record| record.state == RecordState::Settled);
            Reply::Refused(settled.map(|record| value(record.payload.as_ref())))
        }
        _ => Reply::Refused(None),
    }
}
