use std::{
    fmt,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use super::{Binding, Caller, Claim, Claimant, Fingerprint, Origin, RecordKey, SecretNumber, TraceContext, Unseen};

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// A token that nobody has claimed.
    Issued,
    /// Claimed; alive or lapsed, as its lease says.
    Running,
    /// Ended, with a kept answer or as a tombstone.
    Settled,
    /// Ended without an answer; the next claim is granted.
    Released,
}

/// What a store holds for a key, as it is read.
#[derive(Clone)]
#[non_exhaustive]
pub struct Record {
    /// Where it stands.
    pub state: State,
    /// Who claimed it last.
    pub claimant: Claimant,
    /// How many times it was claimed since it began.
    pub attempt: u32,
    /// What the last claim asked for.
    pub fingerprint: Fingerprint,
    /// Who asked, if no scope says so. A released record belongs to this caller.
    pub caller: Caller,
    /// The last claim brought the caller: the record had none before.
    pub caller_is_new: bool,
    /// The number of the secret that the fingerprint and the caller are made with.
    pub secret: SecretNumber,
    /// Who began the operation.
    pub origin: Origin,
    /// The last claim is never taken over.
    pub at_most_once: bool,
    /// The last claim was a takeover.
    pub takeover: bool,
    /// Running: how long the lease is that its claim asked for, or its last renewal. Otherwise zero.
    pub lease: Duration,
    /// Running: what is left of the lease; zero if it has lapsed. Otherwise zero.
    pub lease_left: Duration,
    /// Running: how long ago the lease lapsed; zero if it is alive. Otherwise zero.
    pub lapsed_for: Duration,
    /// When the record began, by the store's clock.
    pub created: SystemTime,
    /// When it was settled, by the store's clock.
    pub settled: Option<SystemTime>,
    /// How long it is still there unless something happens to it.
    pub expires_in: Duration,
    /// The kept answer of a settled record; `None` for a tombstone.
    pub payload: Option<Bytes>,
    /// What the application kept with the claim.
    pub note: Bytes,
    /// What a token is bound to; `None` if the record is no token's.
    pub binding: Option<Binding>,
    /// Where the last run stands in a distributed trace.
    pub trace: Option<TraceContext>,
}

impl Record {
    /// A record in `state` with everything else empty, for stores to fill in.
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
        }
    }

    /// Whether the record is of the request that `claim` was made for: the same caller, the same content.
    pub(crate) fn is_of(&self, claim: &Claim) -> bool {
        claim.under(self.secret) == Some((self.caller, self.fingerprint))
    }

    /// Running, lapsed and not yet taken over: what reconciliation looks for.
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
            .field("note", &Unseen(&self.note))
            .field("binding", &self.binding)
            .field("trace", &self.trace)
            .finish()
    }
}

/// Which records [`StoreAdmin::list`](crate::store::StoreAdmin::list) gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// All of them.
    All,
    /// Those in this state.
    State(State),
    /// Those that are running, lapsed and not yet taken over: what reconciliation looks for.
    Abandoned,
}

impl Filter {
    /// Whether it lets `record` through.
    #[must_use]
    pub fn admits(self, record: &Record) -> bool {
        match self {
            Self::All => true,
            Self::State(state) => record.state == state,
            Self::Abandoned => record.is_abandoned(),
        }
    }
}

/// A record with its key, as [`StoreAdmin::list`](crate::store::StoreAdmin::list) gives it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Entry {
    /// The key.
    pub key: RecordKey,
    /// The record.
    pub record: Record,
}

impl Entry {
    /// Pairs a key with its record.
    #[must_use]
    pub fn new(key: RecordKey, record: Record) -> Self {
        Self { key, record }
    }
}
