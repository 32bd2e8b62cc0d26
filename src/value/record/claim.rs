use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use crate::value::{
    Caller, Claimant, Fingerprint, Origin, Secret, SecretNumber, TraceContext, Unseen, key::labelled_digest,
};

/// The arguments of [`Store::claim`](crate::store::Store::claim).
#[derive(Clone)]
#[non_exhaustive]
pub struct Claim {
    /// The claimant: an identity of its own for each claim.
    pub claimant: Claimant,
    /// The fingerprint of what the request asks for.
    pub fingerprint: Fingerprint,
    /// The caller, if there is no scope.
    pub caller: Caller,
    /// The number of the secret that the fingerprint and the caller are made with.
    pub secret: SecretNumber,
    /// How long the claim lives without renewal.
    pub lease: Duration,
    /// How long the record of a running request outlives its last renewal. The longer of this and `lease` counts.
    pub horizon: Duration,
    /// Whether a lapsed claim is never taken over.
    pub at_most_once: bool,
    /// The binding that the record must have been issued with, if the claim is for a token.
    pub issued: Option<Binding>,
    /// Whatever the application keeps with the record, such as the raw request.
    pub note: Bytes,
    /// The position of the run in a distributed trace.
    pub trace: Option<TraceContext>,
    /// The input of fingerprint and caller, for records that were made with another secret.
    pub(crate) unsealed: Option<Arc<Unsealed>>,
}

pub(crate) struct Unsealed {
    caller: Caller,
    fingerprint: Fingerprint,
    secret: Secret,
}

impl Claim {
    /// Creates a claim with a new claimant, no fingerprint and no caller, which may be taken over once it lapses.
    #[must_use]
    pub fn new(lease: Duration, horizon: Duration) -> Self {
        Self {
            claimant: Claimant::random(),
            fingerprint: Fingerprint::OFF,
            caller: Caller::NONE,
            secret: SecretNumber::NONE,
            lease,
            horizon,
            at_most_once: false,
            issued: None,
            note: Bytes::new(),
            trace: None,
            unsealed: None,
        }
    }

    /// Returns how long the record of the running claim lives without renewal: the longer of lease and horizon.
    #[inline]
    #[must_use]
    pub fn lifetime(&self) -> Duration {
        self.lease.max(self.horizon)
    }

    /// Keys the caller and the fingerprint with a secret.
    pub(crate) fn sealed_with(mut self, secret: &Secret) -> Self {
        let (caller, fingerprint, number) = (self.caller, self.fingerprint, secret.number());
        if let Some(sealed) = secret.seal(number, caller, fingerprint) {
            (self.caller, self.fingerprint) = sealed;
            self.secret = number;
            self.unsealed = Some(Arc::new(Unsealed { caller, fingerprint, secret: secret.clone() }));
        }
        self
    }

    /// Returns the caller and the fingerprint as made with the secret of this number; `None` if that secret is not at
    /// hand.
    pub(crate) fn under(&self, number: SecretNumber) -> Option<(Caller, Fingerprint)> {
        if number == self.secret {
            return Some((self.caller, self.fingerprint));
        }
        let Unsealed { caller, fingerprint, secret } = &**self.unsealed.as_ref()?;
        secret.seal(number, *caller, *fingerprint)
    }

    /// Returns the origin of a record that begins with this claim.
    #[must_use]
    pub fn origin(&self) -> Origin {
        Origin::new(self.caller, self.secret)
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim")
            .field("claimant", &self.claimant)
            .field("fingerprint", &self.fingerprint)
            .field("caller", &self.caller)
            .field("secret", &self.secret)
            .field("lease", &self.lease)
            .field("horizon", &self.horizon)
            .field("at_most_once", &self.at_most_once)
            .field("issued", &self.issued)
            .field("note", &Unseen(&self.note))
            .field("trace", &self.trace)
            .finish_non_exhaustive()
    }
}

/// The binding of a token: a purpose and, if the application has one, a principal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Binding {
    /// The purpose of the token.
    pub purpose: Box<str>,
    /// The principal that it was given to. The layers put `sha256:` and the digest of the principal here, in
    /// hexadecimal digits.
    pub principal: Option<Box<str>>,
}

impl Binding {
    /// Returns the binding as a store keeps it: with a digest of the principal, so that the store does not see the
    /// principal's text.
    pub(crate) fn stored(&self) -> Self {
        let digest = |principal: &str| labelled_digest(principal.as_bytes()).into();
        Self { purpose: self.purpose.clone(), principal: self.principal.as_deref().map(digest) }
    }

    /// Creates a binding to a purpose and a principal.
    #[must_use]
    pub fn new(purpose: &str, principal: Option<&str>) -> Self {
        Self { purpose: purpose.into(), principal: principal.map(Into::into) }
    }
}

/// The arguments of [`Store::issue`](crate::store::Store::issue).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Issue {
    /// The binding of the token.
    pub binding: Binding,
    /// How long the token may be claimed.
    pub lifetime: Duration,
}

impl Issue {
    /// Creates the arguments for a token that is bound by `binding` and lives for `lifetime`.
    #[must_use]
    pub fn new(binding: Binding, lifetime: Duration) -> Self {
        Self { binding, lifetime }
    }
}

/// The end of a claim with an answer; see [`Store::settle`](crate::store::Store::settle).
#[derive(Clone)]
#[non_exhaustive]
pub struct Settlement {
    /// The claimant.
    pub claimant: Claimant,
    /// The kept answer. `None` is a tombstone: the operation ran, and its answer cannot be replayed.
    pub payload: Option<Bytes>,
    /// How long the record answers duplicates from now on.
    pub retention: Duration,
}

impl Settlement {
    /// Settles the claim of `claimant`.
    #[must_use]
    pub fn new(claimant: Claimant, payload: Option<Bytes>, retention: Duration) -> Self {
        Self { claimant, payload, retention }
    }
}

impl fmt::Debug for Settlement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settlement")
            .field("claimant", &self.claimant)
            .field("payload", &self.payload.as_ref().map(Unseen))
            .field("retention", &self.retention)
            .finish()
    }
}

/// The end of a claim without an answer; see [`Store::release`](crate::store::Store::release).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Release {
    /// The claimant.
    pub claimant: Claimant,
    /// How long the attempt count and the caller are remembered.
    pub keep: Duration,
    /// Whether the record becomes what it was before the claim: the attempt does not count, and a first claim leaves no
    /// record.
    pub undo: bool,
}

impl Release {
    /// Releases the claim of `claimant`. The attempt counts.
    #[must_use]
    pub fn new(claimant: Claimant, keep: Duration) -> Self {
        Self { claimant, keep, undo: false }
    }

    /// Takes the claim of `claimant` back, as if it had not been made.
    ///
    /// If earlier attempts are known, they are remembered for `keep` from now on.
    #[must_use]
    pub fn undo(claimant: Claimant, keep: Duration) -> Self {
        Self { claimant, keep, undo: true }
    }
}
