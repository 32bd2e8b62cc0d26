use std::{
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use super::{Hold, released, undone};
use crate::value::{
    Binding, Caller, Claim, Claimant, Fingerprint, Granted, Issue, Origin, Record, RecordHead, Release, SecretNumber,
    Settlement, State, TraceContext, Unseen, millis,
};

/// A record as a store keeps it. Times are milliseconds of the store's own clock, since the Unix epoch.
///
/// [`RecordSlot`](crate::store::RecordSlot) applies the rules to it, and writes and reads it as bytes.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredRecord {
    /// The state.
    pub state: State,
    /// The last claimant.
    pub claimant: Claimant,
    /// The number of claims since the record began.
    pub attempt: u32,
    /// The fingerprint of the last claim.
    pub fingerprint: Fingerprint,
    /// The caller, if there is no scope.
    pub caller: Caller,
    /// Whether the last claim brought the caller: the record had none before.
    pub caller_is_new: bool,
    /// The number of the secret that the fingerprint and the caller are made with.
    pub secret: SecretNumber,
    /// The origin of the operation.
    pub origin: Origin,
    /// Whether the last claim is never taken over.
    pub at_most_once: bool,
    /// Whether the last claim was a takeover.
    pub takeover: bool,
    /// The length of the lease that the last claim or its last renewal asked for, in milliseconds.
    pub lease: u64,
    /// The time at which the lease of a running record lapses.
    pub lease_ends: u64,
    /// The time at which the record expires.
    pub expires: u64,
    /// The time at which the record began.
    pub created: u64,
    /// The time at which the record was settled.
    pub settled: Option<u64>,
    /// The kept answer of a settled record; `None` for a tombstone.
    pub payload: Option<Bytes>,
    /// The note that the application kept with the claim.
    pub note: Bytes,
    /// The binding of a token; `None` if the record is not a token's.
    pub binding: Option<Binding>,
    /// The time at which a token expires if it is issued, and once it is issued again.
    pub token_expires: u64,
    /// The position of the last run in a distributed trace.
    pub trace: Option<TraceContext>,
}

impl StoredRecord {
    /// Creates a record in `state` with everything else empty, for stores to fill in.
    #[must_use]
    pub fn new(state: State, claimant: Claimant, attempt: u32) -> Self {
        Self {
            state,
            claimant,
            attempt,
            fingerprint: Fingerprint::OFF,
            caller: Caller::NONE,
            caller_is_new: false,
            secret: SecretNumber::NONE,
            origin: Origin::NONE,
            at_most_once: false,
            takeover: false,
            lease: 0,
            lease_ends: 0,
            expires: 0,
            created: 0,
            settled: None,
            payload: None,
            note: Bytes::new(),
            binding: None,
            token_expires: 0,
            trace: None,
        }
    }

    /// Creates the record of a token.
    pub(crate) fn issued(issue: &Issue, now: u64) -> Self {
        let expires = later(now, issue.lifetime);
        Self {
            expires,
            created: now,
            binding: Some(issue.binding.clone()),
            token_expires: expires,
            ..Self::new(State::Issued, Claimant::NONE, 0)
        }
    }

    /// Creates the record of a claim that was granted on what was there before.
    pub(crate) fn running(before: Option<&Self>, claim: &Claim, granted: Granted, now: u64) -> Self {
        let mut record = Self {
            fingerprint: claim.fingerprint,
            caller: claim.caller,
            caller_is_new: granted.caller_is_new,
            secret: claim.secret,
            origin: granted.origin,
            at_most_once: claim.at_most_once,
            takeover: granted.takeover,
            created: before.map_or(now, |before| before.created),
            note: claim.note.clone(),
            binding: claim.issued.clone(),
            token_expires: before.map_or(0, |before| before.token_expires),
            trace: claim.trace,
            ..Self::new(State::Running, claim.claimant, granted.attempt)
        };
        record.renew(claim, now);
        record
    }

    pub(crate) fn renew(&mut self, claim: &Claim, now: u64) {
        self.lease = millis(claim.lease);
        self.lease_ends = later(now, claim.lease);
        self.expires = later(now, claim.lifetime());
    }

    pub(crate) fn settle(&mut self, settlement: &Settlement, now: u64) {
        self.state = State::Settled;
        self.claimant = settlement.claimant;
        self.payload.clone_from(&settlement.payload);
        self.settled = Some(now);
        self.expires = later(now, settlement.retention);
    }

    /// Releases or undoes the claim. A record that began with the claim has expired once the claim is undone.
    pub(crate) fn release(&mut self, release: &Release, now: u64) {
        let token_expires = self.binding.as_ref().map(|_| self.token_expires);
        let left = if release.undo { Some(undone(&self.head())) } else { None };
        self.claimant = release.claimant;
        (self.state, self.expires) = released(token_expires, later(now, release.keep));
        match left {
            None => {}
            Some(None) => self.expires = now,
            Some(Some(left)) => {
                (self.attempt, self.caller, self.caller_is_new) = (left.attempt, left.caller, false);
                (self.secret, self.origin) = (left.secret, left.origin);
            }
        }
    }

    /// Returns what decides about a claim.
    #[must_use]
    pub fn head(&self) -> RecordHead<'_> {
        RecordHead {
            fingerprint: self.fingerprint,
            caller: self.caller,
            caller_is_new: self.caller_is_new,
            secret: self.secret,
            origin: self.origin,
            at_most_once: self.at_most_once,
            takeover: self.takeover,
            lease_ends: self.lease_ends,
            expires: self.expires,
            binding: self.binding.as_ref(),
            ..RecordHead::new(self.state, self.claimant, self.attempt)
        }
    }

    pub(crate) fn hold(&self, now: u64) -> Hold {
        Hold { state: self.state, claimant: self.claimant, lapsed: self.lease_ends <= now }
    }

    /// Returns the record as it is read at `now`.
    #[must_use]
    pub fn read(&self, now: u64) -> Record {
        let time = |millis| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis));
        let running = |millis| Duration::from_millis(if self.state == State::Running { millis } else { 0 });
        Record {
            lease: running(self.lease),
            lease_left: running(self.lease_ends.saturating_sub(now)),
            lapsed_for: running(now.saturating_sub(self.lease_ends)),
            created: time(self.created).unwrap_or(SystemTime::UNIX_EPOCH),
            settled: self.settled.and_then(time),
            expires_in: Duration::from_millis(self.expires.saturating_sub(now)),
            payload: self.payload.clone(),
            note: self.note.clone(),
            trace: self.trace,
            ..Record::from(&self.head())
        }
    }
}

/// Returns the time that is `duration` after `now`.
fn later(now: u64, duration: Duration) -> u64 {
    now.saturating_add(millis(duration))
}

impl fmt::Debug for StoredRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRecord")
            .field("head", &self.head())
            .field("lease", &self.lease)
            .field("created", &self.created)
            .field("settled", &self.settled)
            .field("payload", &self.payload.as_ref().map(Unseen))
            .field("note", &Unseen(&self.note))
            .field("token_expires", &self.token_expires)
            .field("trace", &self.trace)
            .finish_non_exhaustive()
    }
}
