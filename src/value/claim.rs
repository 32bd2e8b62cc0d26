use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Caller, Claimant, Fingerprint, Origin, Secret, SecretNumber, TraceContext, Unseen, digest::labelled_digest,
};

/// What a request brings to [`Store::claim`](crate::store::Store::claim).
#[derive(Clone)]
#[non_exhaustive]
pub struct Claim {
    /// Who claims.
    pub claimant: Claimant,
    /// What the request asks for.
    pub fingerprint: Fingerprint,
    /// Who asks, if no scope says so.
    pub caller: Caller,
    /// The number of the secret that the fingerprint and the caller are made with.
    pub secret: SecretNumber,
    /// How long the claim lives without renewal.
    pub lease: Duration,
    /// How long the record of a running request outlives its last renewal. The longer of this and `lease` counts.
    pub horizon: Duration,
    /// A lapsed claim is never taken over.
    pub at_most_once: bool,
    /// The record must have been issued, with this binding.
    pub issued: Option<Binding>,
    /// Whatever the application keeps with the record, such as the raw request.
    pub note: Bytes,
    /// Where the run stands in a distributed trace.
    pub trace: Option<TraceContext>,
    /// What fingerprint and caller are made from, for records that were made with another secret.
    pub(crate) unsealed: Option<Arc<Unsealed>>,
}

pub(crate) struct Unsealed {
    caller: Caller,
    fingerprint: Fingerprint,
    secret: Secret,
}

impl Claim {
    /// A claim with a new claimant, no fingerprint and no caller, that may be taken over once it lapses.
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

    /// The caller and the fingerprint as a record has them whose secret has this number; `None` if that is not at hand.
    pub(crate) fn under(&self, number: SecretNumber) -> Option<(Caller, Fingerprint)> {
        if number == self.secret {
            return Some((self.caller, self.fingerprint));
        }
        let Unsealed { caller, fingerprint, secret } = &**self.unsealed.as_ref()?;
        secret.seal(number, *caller, *fingerprint)
    }

    /// What a record that begins with this claim keeps of it for later ones.
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

/// What a token is bound to: a purpose and, if the application has one, a principal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Binding {
    /// What the token is for.
    pub purpose: Box<str>,
    /// Whom it was given to. The layers put `sha256:` and the digest of the principal here, in hexadecimal digits.
    pub principal: Option<Box<str>>,
}

impl Binding {
    /// Returns the binding as a store keeps it: with a digest of the principal, whose text is nobody's business there.
    pub(crate) fn stored(&self) -> Self {
        let digest = |principal: &str| labelled_digest(principal.as_bytes()).into();
        Self { purpose: self.purpose.clone(), principal: self.principal.as_deref().map(digest) }
    }

    /// Binds to a purpose and a principal.
    #[must_use]
    pub fn new(purpose: &str, principal: Option<&str>) -> Self {
        Self { purpose: purpose.into(), principal: principal.map(Into::into) }
    }
}

/// What [`Store::issue`](crate::store::Store::issue) puts into a store.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Issue {
    /// What the token is bound to.
    pub binding: Binding,
    /// How long it may be claimed.
    pub life: Duration,
}

impl Issue {
    /// A token for `binding` that lives for `life`.
    #[must_use]
    pub fn new(binding: Binding, life: Duration) -> Self {
        Self { binding, life }
    }
}

/// How a claim ends with an answer; see [`Store::settle`](crate::store::Store::settle).
#[derive(Clone)]
#[non_exhaustive]
pub struct Settlement {
    /// Who claimed.
    pub claimant: Claimant,
    /// The kept answer. `None` is a tombstone: it ran, and cannot be replayed.
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

/// How a claim ends without an answer; see [`Store::release`](crate::store::Store::release).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Release {
    /// Who claimed.
    pub claimant: Claimant,
    /// How long the attempt count and the caller are remembered.
    pub keep: Duration,
    /// The record becomes what it was before the claim: the attempt does not count, and a first one leaves no record.
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
