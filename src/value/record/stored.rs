use std::{
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use crate::value::{
    Binding, Caller, Claim, Claimant, Fingerprint, Origin, RecordKey, SecretNumber, TraceContext, Unseen,
};

use super::seal::{Seal, SealingKeyId};

/// The state of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// A token that nobody has claimed.
    Issued,
    /// Claimed; its lease states whether the claim is alive or has lapsed.
    Running,
    /// Ended, with a kept answer or as a tombstone.
    Settled,
    /// Ended without an answer; the next claim is granted.
    Released,
}

/// The record that a store holds for a key, as it is read.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The state.
    pub state: State,
    /// The last claimant.
    pub claimant: Claimant,
    /// The number of claims since the record began.
    pub attempt: u32,
    /// The fingerprint of the last claim.
    pub fingerprint: Fingerprint,
    /// The caller, if there is no scope. A released record belongs to this caller.
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
    /// For a running record, the length of the lease that its claim or its last renewal asked for. Otherwise zero.
    pub lease: Duration,
    /// For a running record, what is left of the lease; zero if it has lapsed. Otherwise zero.
    pub lease_left: Duration,
    /// For a running record, the time since the lease lapsed; zero if it is alive. Otherwise zero.
    pub lapsed_for: Duration,
    /// The time at which the record began, by the store's clock.
    pub created: SystemTime,
    /// The time at which the record was settled, by the store's clock.
    pub settled: Option<SystemTime>,
    /// The time that the record remains unless something happens to it.
    pub expires_in: Duration,
    /// The kept answer of a settled record; `None` for a tombstone.
    pub payload: Option<Bytes>,
    /// The note that the application kept with the claim.
    pub note: Bytes,
    /// The binding of a token; `None` if the record is not a token's.
    pub binding: Option<Binding>,
    /// The position of the last run in a distributed trace.
    pub trace: Option<TraceContext>,
    /// The keys that payload and note were decrypted with.
    pub(crate) opened: [Option<SealingKeyId>; 2],
}

impl Record {
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
            lease: Duration::ZERO,
            lease_left: Duration::ZERO,
            lapsed_for: Duration::ZERO,
            created: SystemTime::UNIX_EPOCH,
            settled: None,
            expires_in: Duration::ZERO,
            payload: None,
            note: Bytes::new(),
            binding: None,
            trace: None,
            opened: [None; 2],
        }
    }

    /// Returns whether the payload is kept encrypted, and under which key.
    ///
    /// It is [`Opened`](Seal::Opened) if the record was read through a `SealedStore` that has the key. Any store can
    /// tell [`Closed`](Seal::Closed): `payload` is the encrypted bytes then.
    #[must_use]
    pub fn payload_seal(&self) -> Seal {
        Seal::of(self.payload.as_deref().unwrap_or_default(), self.opened[0])
    }

    /// Returns whether the note is kept encrypted, and under which key; see [`payload_seal`](Self::payload_seal).
    #[must_use]
    pub fn note_seal(&self) -> Seal {
        Seal::of(&self.note, self.opened[1])
    }

    /// Returns whether the record belongs to the request that `claim` was made for: the same caller, the same content.
    pub(crate) fn is_of(&self, claim: &Claim) -> bool {
        claim.under(self.secret) == Some((self.caller, self.fingerprint))
    }

    /// Returns whether the record is abandoned: running, lapsed and not yet taken over. Reconciliation looks for such
    /// records.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.state == State::Running && self.lease_left.is_zero()
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Record")
            .field("state", &self.state)
            .field("claimant", &self.claimant)
            .field("attempt", &self.attempt)
            .field("fingerprint", &self.fingerprint)
            .field("caller", &self.caller)
            .field("caller_is_new", &self.caller_is_new)
            .field("secret", &self.secret)
            .field("origin", &self.origin)
            .field("at_most_once", &self.at_most_once)
            .field("takeover", &self.takeover)
            .field("lease", &self.lease)
            .field("lease_left", &self.lease_left)
            .field("lapsed_for", &self.lapsed_for)
            .field("created", &self.created)
            .field("settled", &self.settled)
            .field("expires_in", &self.expires_in)
            .field("payload", &self.payload.as_ref().map(Unseen))
            .field("payload_seal", &self.payload_seal())
            .field("note", &Unseen(&self.note))
            .field("note_seal", &self.note_seal())
            .field("binding", &self.binding)
            .field("trace", &self.trace)
            .finish_non_exhaustive()
    }
}

/// The records that [`StoreAdmin::list`](crate::store::StoreAdmin::list) returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// All records.
    All,
    /// Records in this state.
    State(State),
    /// Abandoned records: running, lapsed and not yet taken over. Reconciliation looks for them.
    Abandoned,
}

impl Filter {
    /// Returns whether the filter includes `record`.
    #[must_use]
    pub fn admits(self, record: &Record) -> bool {
        match self {
            Self::All => true,
            Self::State(state) => record.state == state,
            Self::Abandoned => record.is_abandoned(),
        }
    }
}

/// A record with its key, as [`StoreAdmin::list`](crate::store::StoreAdmin::list) returns it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The key.
    pub key: RecordKey,
    /// The record.
    pub record: Record,
}

impl Entry {
    /// Creates an entry of a key and its record.
    #[must_use]
    pub fn new(key: RecordKey, record: Record) -> Self {
        Self { key, record }
    }
}
