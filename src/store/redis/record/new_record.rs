//! Writing a record, in the parts that the commands need: all of it for `SET`, single parts as arguments of scripts.
//!
//! What only the server knows is left as zeros: when the record was created, and the first expiry of a token. The
//! scripts fill both in from what they find.

use std::time::Duration;

use crate::value::{self, Binding, Claim, Claimant, Granted, Issue, State};

use super::{
    AT_MOST_ONCE, ATTEMPT, BACKWARDS, CALLER, CALLER_IS_NEW, CREATED, DIGEST, FLAGS, FOREVER, HEAD, LEASE, PARTS,
    SCHEME, SECRET, TAKEOVER, VERSION, WAITED_FOR, code, parts::Parts,
};

/// A record to be written, in parts, between which the scripts insert what only the server knows.
pub(in crate::store::redis) struct NewRecord {
    /// The part up to its creation.
    pub(in crate::store::redis) prefix: [u8; CREATED],
    /// Lease, span and the length of no payload.
    pub(in crate::store::redis) times: [u8; 20],
    /// The part that follows a token's first expiry, or the payload.
    pub(in crate::store::redis) suffix: Vec<u8>,
    /// How long it lives, in milliseconds.
    pub(in crate::store::redis) span: u64,
    /// Whether the record is a token's, so that its first expiry precedes the parts.
    token: bool,
}

impl NewRecord {
    /// Creates the record of an issued token.
    pub(in crate::store::redis) fn issued(issue: &Issue) -> Self {
        let parts = Parts { binding: Some(issue.binding.clone()), ..Parts::default() };
        let prefix = prefix(State::Issued, Claimant::from_bytes([0; 16]), 0, 0, parts.bits());
        let span = millis(issue.lifetime);
        Self { prefix, times: times(0, span, 0), suffix: parts.bytes(), span, token: true }
    }

    /// Creates the record of a granted claim, with a binding if the record is a token's.
    pub(in crate::store::redis) fn running(claim: &Claim, granted: &Granted, binding: Option<&Binding>) -> Self {
        let parts = Parts {
            binding: binding.cloned(),
            origin: Some(granted.origin).filter(|origin| *origin != claim.origin()),
            trace: claim.trace,
            note: &claim.note,
        };
        let flags =
            [(AT_MOST_ONCE, claim.at_most_once), (TAKEOVER, granted.takeover), (CALLER_IS_NEW, granted.caller_is_new)];
        let flags = flags.into_iter().map(|(flag, is_set)| if is_set { flag } else { 0 }).sum();
        let mut prefix = prefix(State::Running, claim.claimant, granted.attempt, flags, parts.bits());
        prefix[SCHEME] = claim.fingerprint.scheme();
        prefix[DIGEST..CALLER].copy_from_slice(claim.fingerprint.digest());
        prefix[CALLER..SECRET].copy_from_slice(&claim.caller.to_bytes());
        prefix[SECRET..].copy_from_slice(&claim.secret.to_u32().to_be_bytes());
        let (lease, span) = lease_and_span(claim);
        Self { prefix, times: times(lease, span, 0), suffix: parts.bytes(), span, token: binding.is_some() }
    }

    /// Returns the parts of the whole record, without anything that only the server knows.
    pub(in crate::store::redis) fn parts(&self) -> [&[u8]; 5] {
        let expiry: &[u8] = if self.token { &[0; 8] } else { &[] };
        [&self.prefix, &[0; 8], &self.times, expiry, &self.suffix]
    }

    /// Returns the whole record.
    #[cfg(test)]
    pub(in crate::store::redis) fn encode(&self) -> Vec<u8> {
        self.parts().concat()
    }
}

/// Returns the head of the record that a running one ends as, in this state and with this flag of the payload, if it was
/// created `age` milliseconds ago; `times` are lease, span and length of the payload.
///
/// The scripts build the same head.
pub(in crate::store::redis) fn ended(running: &[u8], state: State, flag: u8, age: u64, times: [u8; 20]) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..LEASE].copy_from_slice(&running[..LEASE]);
    head[1] = code(state);
    head[WAITED_FOR] = 0;
    head[FLAGS] = running[FLAGS] & (AT_MOST_ONCE | TAKEOVER | CALLER_IS_NEW) | flag;
    head[CREATED..LEASE].copy_from_slice(&age.min(BACKWARDS - 1).to_be_bytes());
    head[LEASE..].copy_from_slice(&times);
    head
}

/// Returns lease and span of a running record, in milliseconds.
pub(in crate::store::redis) fn lease_and_span(claim: &Claim) -> (u64, u64) {
    (millis(claim.lease), millis(claim.lifetime()))
}

/// Returns lease, span and length of the payload, as they are encoded in a record.
pub(in crate::store::redis) fn times(lease: u64, span: u64, length: u32) -> [u8; 20] {
    let mut times = [0; 20];
    times[..8].copy_from_slice(&lease.to_be_bytes());
    times[8..16].copy_from_slice(&span.to_be_bytes());
    times[16..].copy_from_slice(&length.to_be_bytes());
    times
}

/// Returns milliseconds, at most four thousand years.
pub(in crate::store::redis) fn millis(duration: Duration) -> u64 {
    value::millis(duration).min(FOREVER)
}

/// Returns the part up to its creation, with zeros from the scheme of the fingerprint on.
fn prefix(state: State, claimant: Claimant, attempt: u32, flags: u8, parts: u8) -> [u8; CREATED] {
    let mut prefix = [0; CREATED];
    prefix[..2].copy_from_slice(&[VERSION, code(state)]);
    prefix[2..ATTEMPT].copy_from_slice(&claimant.to_bytes());
    prefix[ATTEMPT..WAITED_FOR].copy_from_slice(&attempt.to_be_bytes());
    (prefix[FLAGS], prefix[PARTS]) = (flags, parts);
    prefix
}
