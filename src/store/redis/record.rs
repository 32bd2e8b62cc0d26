//! Reading a record. The layout is in the documentation of the parent module.
//!
//! Anything may be in the server: `EncodedRecord::read` accepts every string and distinguishes a record of a later version
//! (`Newer`) from one that is damaged (`Corrupt`). The times of a record count from its last change, whose age is the span
//! less what `PTTL` says.
//!
//! A change of the layout needs a new version: the scripts compare the first byte, so an old process neither changes
//! nor takes over a record of a new one, and answers it with 409 `record-incompatible`.

mod new_record;
mod parts;

use std::{
    ops::Range,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use crate::store::support::bytes::DecodeError;
use crate::value::{
    Binding, Caller, Claimant, Fingerprint, Origin, Record, RecordHead, SecretNumber, State, TraceContext,
};

pub(super) use self::new_record::{NewRecord, ended, lease_and_span, millis, times};

use self::parts::Parts;

// A record is one string, numbers in network order:
//
//   0 version      22 1 if somebody waits      26 digest        87 lease, ms
//   1 state        23 flags                    58 caller        95 span: its life since the last renewal or change, ms
//   2 claimant     24 parts                    75 secret       103 length of the payload
//  18 attempt      25 scheme of the digest     79 created      107 payload
//
// The payload is followed by what only few records have, as the bits of `parts` state, in this order: a token's first
// expiry (0: the record's expiry), its purpose and its principal, each preceded by its length; the origin, unless it is
// the caller and the secret of this claim; the trace context; the note, to the end.
//
// `created` is milliseconds since 1970, or, if it is less than 2^40, milliseconds before the last change, which is the
// expiry less the span. So a claim of a free key knows each byte of the record without reading the server's clock, and
// can write a settled record as well (`compared`).
//
// The scripts in `lua` use the same offsets, counted from 1.

/// The version of this layout. A record of another version is never changed and never matched.
const VERSION: u8 = 2;
/// How many bytes precede the payload.
pub(super) const HEAD: usize = 107;
/// The length of version, state and claimant, which state whose record it is.
pub(super) const OWNED: usize = 18;
/// The places of the parts, counted from 0; the scripts count from 1.
const ATTEMPT: usize = 18;
/// The byte that is 1 if a request waits for the end of the claim. What precedes it, a takeover compares: version, state,
/// claimant, attempt.
const WAITED_FOR: usize = 22;
const FLAGS: usize = 23;
/// The byte with a bit for each part behind the payload.
const PARTS: usize = 24;
const SCHEME: usize = 25;
const DIGEST: usize = 26;
const CALLER: usize = 58;
const SECRET: usize = 75;
/// Eight bytes: when the record began.
const CREATED: usize = 79;
const LEASE: usize = 87;
/// Eight bytes: the life of the record from its last change.
const SPAN: usize = 95;
/// Four bytes: the length of the payload.
const LENGTH: usize = 103;

/// The flags, in the byte at `FLAGS`.
const AT_MOST_ONCE: u8 = 1;
const TAKEOVER: u8 = 1 << 1;
const CALLER_IS_NEW: u8 = 1 << 2;
pub(super) const PAYLOAD: u8 = 1 << 3;

/// A creation time below this moment of the year 2004 counts backwards from the last change.
const BACKWARDS: u64 = 1 << 40;

/// Longer spans are reduced to this: four thousand years.
const FOREVER: u64 = 1 << 47;

/// The result of `PTTL` for a record that never expires; also used for a record whose `PTTL` was not queried.
pub(super) const NO_TTL: i64 = -1;

/// A record as it was read, and the rest of its life.
pub(super) struct EncodedRecord {
    /// The whole string, which payload and note are slices of.
    bytes: Bytes,
    state: State,
    /// The place of the payload.
    payload: Range<usize>,
    /// What a token is bound to.
    pub(super) binding: Option<Binding>,
    /// The first claim of the operation.
    origin: Origin,
    trace: Option<TraceContext>,
    /// What the claim brought for reconciliation.
    note: Bytes,
    /// Milliseconds until it expires.
    left: u64,
}

impl EncodedRecord {
    /// Reads a record whose `PTTL` is `left`.
    pub(super) fn read(bytes: Vec<u8>, left: i64) -> Result<Self, DecodeError> {
        let bytes = Bytes::from(bytes);
        match bytes.first() {
            Some(&VERSION) => {}
            Some(&version) if version > VERSION => return Err(DecodeError::Newer),
            _ => return Err(DecodeError::Corrupt),
        }
        let states = [State::Issued, State::Running, State::Settled, State::Released];
        let state = states.into_iter().find(|&state| bytes.get(1) == Some(&code(state))).ok_or(DecodeError::Corrupt)?;
        let length = u32::from_be_bytes(array(&bytes, LENGTH).ok_or(DecodeError::Corrupt)?) as usize;
        let payload = HEAD..HEAD.saturating_add(length);
        let behind = bytes.get(payload.end..).ok_or(DecodeError::Corrupt)?;
        let Parts { binding, origin, trace, note } = Parts::read(bytes[PARTS], behind).ok_or(DecodeError::Corrupt)?;
        let origin = origin.unwrap_or_else(|| Origin::new(caller(&bytes), secret(&bytes)));
        let note = bytes.slice_ref(note);
        // Somebody may have removed the expiry; -2 means that the record has just expired.
        let left = if left == NO_TTL { FOREVER } else { left.try_into().unwrap_or(0) };
        Ok(Self { bytes, state, payload, binding, origin, trace, note, left })
    }

    /// Returns what decides about a claim; its times count from the last renewal, whose age is [`age`](Self::age).
    pub(super) fn head(&self) -> RecordHead<'_> {
        RecordHead {
            fingerprint: self.fingerprint(),
            caller: caller(&self.bytes),
            caller_is_new: self.has(CALLER_IS_NEW),
            secret: secret(&self.bytes),
            origin: self.origin,
            at_most_once: self.has(AT_MOST_ONCE),
            takeover: self.has(TAKEOVER),
            lease_ends: self.u64(LEASE),
            expires: self.age() + self.left,
            binding: self.binding.as_ref(),
            ..RecordHead::new(self.state, self.claimant(), self.attempt())
        }
    }

    /// Returns how long ago the record was renewed or changed, by the server's clock.
    pub(super) fn age(&self) -> u64 {
        self.u64(SPAN).saturating_sub(self.left)
    }

    /// Returns whether its life was over when it was read.
    pub(super) fn has_expired(&self) -> bool {
        self.left == 0
    }

    /// Returns what a takeover compares: version, state, claimant and attempt.
    pub(super) fn version_token(&self) -> &[u8] {
        &self.bytes[..WAITED_FOR]
    }

    /// Returns the kept answer; `None` for a tombstone and for a record that is not settled.
    pub(super) fn payload(&self) -> Option<Bytes> {
        self.has(PAYLOAD).then(|| self.bytes.slice(self.payload.clone()))
    }

    /// Returns the record for operators; `expires` is when it expires, by the server's clock.
    pub(super) fn record(&self, expires: i64) -> Record {
        let changed = u64::try_from(expires).unwrap_or(0).saturating_sub(self.u64(SPAN));
        let created = match self.u64(CREATED) {
            before @ ..BACKWARDS => changed.saturating_sub(before),
            created => created,
        };
        let time = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        let (lease, age) = if self.state == State::Running { (self.u64(LEASE), self.age()) } else { (0, 0) };
        Record {
            lease: Duration::from_millis(lease),
            lease_left: Duration::from_millis(lease.saturating_sub(age)),
            lapsed_for: Duration::from_millis(age.saturating_sub(lease)),
            created: time(created),
            settled: (self.state == State::Settled).then(|| time(changed)),
            expires_in: Duration::from_millis(self.left),
            payload: self.payload(),
            note: self.note.clone(),
            trace: self.trace,
            ..Record::from(&self.head())
        }
    }

    /// Reads the attempt.
    fn attempt(&self) -> u32 {
        u32::from_be_bytes(array(&self.bytes, ATTEMPT).unwrap_or_default())
    }

    /// Reads the claimant.
    fn claimant(&self) -> Claimant {
        Claimant::from_bytes(array(&self.bytes, 2).unwrap_or_default())
    }

    /// Reads the fingerprint.
    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::from_parts(self.bytes[SCHEME], array(&self.bytes, DIGEST).unwrap_or_default())
    }

    /// Reads a number of eight bytes.
    fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(array(&self.bytes, at).unwrap_or_default())
    }

    /// Returns whether a flag is set.
    fn has(&self, flag: u8) -> bool {
        self.bytes[FLAGS] & flag != 0
    }
}

fn caller(bytes: &[u8]) -> Caller {
    array(bytes, CALLER).map_or(Caller::NONE, Caller::from_bytes)
}

fn secret(bytes: &[u8]) -> SecretNumber {
    SecretNumber::from_u32(u32::from_be_bytes(array(bytes, SECRET).unwrap_or_default()))
}

/// Returns whether a record is running, by its bytes.
pub(super) fn is_running(bytes: &[u8]) -> bool {
    bytes.get(1) == Some(&code(State::Running))
}

/// Returns the lease of a record in milliseconds, by its bytes.
pub(super) fn lease(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(array(bytes, LEASE).unwrap_or_default())
}

/// Returns the first bytes of a record that is running under this claimant.
pub(super) fn owned_by(claimant: Claimant) -> [u8; OWNED] {
    let mut owned = [VERSION; OWNED];
    owned[1] = code(State::Running);
    owned[2..].copy_from_slice(&claimant.to_bytes());
    owned
}

/// Returns the state of a record of which only the head was read, and whether it is abandoned.
///
/// It is used for lists and counts, which would otherwise transfer every answer.
pub(super) fn decode_summary(head: &[u8], left: i64) -> Option<(State, bool)> {
    let mut head = head.to_vec();
    // Without its payload and what follows it, the head is a complete record.
    head.get_mut(LENGTH..HEAD)?.fill(0);
    head[PARTS] = 0;
    let stored = EncodedRecord::read(head, left).ok()?;
    let lapsed = stored.u64(LEASE) <= stored.age();
    (!stored.has_expired()).then_some((stored.state, stored.state == State::Running && lapsed))
}

/// Returns the byte of a state.
fn code(state: State) -> u8 {
    match state {
        State::Issued => 0,
        State::Running => 1,
        State::Settled => 2,
        State::Released => 3,
    }
}

/// Returns `N` bytes at a place; `None` if the record is shorter.
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests;
