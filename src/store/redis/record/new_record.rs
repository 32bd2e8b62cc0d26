//! Writing a record, in the parts that the commands need: all of it for `SET`, single parts as arguments of scripts.
//!
//! What only the server knows is left as zeros: when the record was created, and the first expiry of a token. The
//! scripts fill both in from what they find.

use std::time::Duration;

use crate::value::{self, Binding, Claim, Claimant, Granted, Issue, State};

use super::{AT_MOST_ONCE, CALLER_IS_NEW, CREATED, FOREVER, TAKEOVER, VERSION, code, parts::Parts};

/// A record to be written, in parts, between which the scripts insert what only the server knows.
pub(in crate::store::redis) struct NewRecord {
    /// The part up to its creation.
    pub(in crate::store::redis) prefix: Vec<u8>,
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
        let mut prefix = prefix(State::Issued, Claimant::from_bytes([0; 16]), 0, 0, parts.bits());
        prefix.resize(CREATED, 0);
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
        prefix.push(claim.fingerprint.scheme());
        prefix.extend_from_slice(claim.fingerprint.digest());
        prefix.extend_from_slice(&claim.caller.to_bytes());
        prefix.extend_from_slice(&claim.secret.to_u32().to_be_bytes());
        let (lease, span) = lease_and_span(claim);
        Self { prefix, times: times(lease, span, 0), suffix: parts.bytes(), span, token: binding.is_some() }
    }

    /// Returns the whole record, without anything that only the server knows.
    pub(in crate::store::redis) fn encode(&self) -> Vec<u8> {
        let expiry: &[u8] = if self.token { &[0; 8] } else { &[] };
        [&self.prefix, &[0; 8][..], &self.times, expiry, &self.suffix].concat()
    }
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

/// Returns the part up to the scheme of the fingerprint.
fn prefix(state: State, claimant: Claimant, attempt: u32, flags: u8, parts: u8) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(CREATED);
    prefix.extend_from_slice(&[VERSION, code(state)]);
    prefix.extend_from_slice(&claimant.to_bytes());
    prefix.extend_from_slice(&attempt.to_be_bytes());
    let nobody_waits = 0;
    prefix.extend_from_slice(&[nobody_waits, flags, parts]);
    prefix
}
