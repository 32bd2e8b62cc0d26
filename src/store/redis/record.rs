use std::{
    ops::Range,
    time::{Duration, SystemTime},
};

use bytes::Bytes;

use crate::value::{Binding, Caller, Claim, Claimant, Fingerprint, Head, Issue, Record, State};

// A record is one string, numbers in network order:
//
//   0 version       4 attempt     56 caller                      88 span: its life since the last renewal or change, ms
//   1 state         8 claimant    72 created, ms since 1970      96 length of the payload
//   2 flags        24 digest         0: expiry less span        100 payload
//   3 scheme                      80 lease, ms
//
// Behind the payload stands what few records have: a token's first expiry (0: the record's expiry), its purpose and its
// principal, each behind its length; then the note, to the end. The scripts in `lua` know the places, counted from 1.

/// The version of this layout. A record of another version is never changed and never matched.
const VERSION: u8 = 1;
/// How many bytes stand in front of the payload.
pub(super) const HEAD: usize = 100;
const CREATED: usize = 72;

const AT_MOST_ONCE: u8 = 1;
const TAKEOVER: u8 = 1 << 1;
const TOKEN: u8 = 1 << 2;
const NOTE: u8 = 1 << 3;
pub(super) const PAYLOAD: u8 = 1 << 4;

const NO_PRINCIPAL: u32 = u32::MAX;

/// Longer spans are cut to this: four thousand years.
const FOREVER: u64 = 1 << 47;

/// What `PTTL` says of a record that never expires, and what is said of one that was there and was not asked about.
pub(super) const UNTOLD: i64 = -1;

/// Why a string is not taken for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is one of a later version of this crate.
    Newer,
    /// It is none.
    Torn,
}

/// A record as it was read, and what is left of its life.
pub(super) struct Stored {
    bytes: Bytes,
    state: State,
    payload: Range<usize>,
    note: usize,
    pub(super) binding: Option<Binding>,
    /// Milliseconds until it expires.
    left: u64,
}

impl Stored {
    /// Reads a record of which `PTTL` says `left`.
    pub(super) fn read(bytes: Vec<u8>, left: i64) -> Result<Self, Unreadable> {
        let bytes = Bytes::from(bytes);
        match bytes.first() {
            Some(&VERSION) => {}
            Some(&version) if version > VERSION => return Err(Unreadable::Newer),
            _ => return Err(Unreadable::Torn),
        }
        let states = [State::Issued, State::Running, State::Settled, State::Released];
        let state = states.into_iter().find(|&state| bytes.get(1) == Some(&code(state))).ok_or(Unreadable::Torn)?;
        let length = u32::from_be_bytes(array(&bytes, 96).ok_or(Unreadable::Torn)?) as usize;
        let payload = HEAD..HEAD.saturating_add(length);
        let rare = bytes.get(payload.end..).ok_or(Unreadable::Torn)?;
        let (binding, rest) = match bytes[2] & TOKEN {
            0 => (None, rare.len()),
            _ => read_binding(rare).ok_or(Unreadable::Torn)?,
        };
        let note = bytes.len() - rest;
        // Somebody may have taken the expiry away; -2 is said of a record that has just expired.
        let left = if left == UNTOLD { FOREVER } else { left.try_into().unwrap_or(0) };
        Ok(Self { bytes, state, payload, note, binding, left })
    }

    /// What decides about a claim; its times count from the last renewal, whose age is [`age`](Self::age).
    pub(super) fn head(&self) -> Head<'_> {
        Head {
            fingerprint: self.fingerprint(),
            caller: self.caller(),
            at_most_once: self.has(AT_MOST_ONCE),
            takeover: self.has(TAKEOVER),
            lease_ends: self.u64(80),
            expires: self.age() + self.left,
            binding: self.binding.as_ref(),
            ..Head::new(self.state, self.claimant(), self.attempt())
        }
    }

    /// How long ago the record was renewed or changed, by the server's clock.
    pub(super) fn age(&self) -> u64 {
        self.u64(88).saturating_sub(self.left)
    }

    pub(super) fn has_expired(&self) -> bool {
        self.left == 0
    }

    /// What a takeover compares: state, attempt and claimant.
    pub(super) fn seen(&self) -> Vec<u8> {
        [&self.bytes[1..2], &self.bytes[4..24]].concat()
    }

    pub(super) fn payload(&self) -> Option<Bytes> {
        self.has(PAYLOAD).then(|| self.bytes.slice(self.payload.clone()))
    }

    /// The record for operators; `expires` is when it expires, by the server's clock.
    pub(super) fn record(&self, expires: i64) -> Record {
        let changed = u64::try_from(expires).unwrap_or(0).saturating_sub(self.u64(88));
        let time = |ms| SystemTime::UNIX_EPOCH + Duration::from_millis(ms);
        let lease_left = match self.state {
            State::Running => Duration::from_millis(self.u64(80).saturating_sub(self.age())),
            _ => Duration::ZERO,
        };
        Record {
            fingerprint: self.fingerprint(),
            caller: self.caller(),
            at_most_once: self.has(AT_MOST_ONCE),
            takeover: self.has(TAKEOVER),
            lease_left,
            created: time(Some(self.u64(CREATED)).filter(|&created| created > 0).unwrap_or(changed)),
            settled: (self.state == State::Settled).then(|| time(changed)),
            expires_in: Duration::from_millis(self.left),
            payload: self.payload(),
            note: if self.has(NOTE) { self.bytes.slice(self.note..) } else { Bytes::new() },
            binding: self.binding.clone(),
            ..Record::new(self.state, self.claimant(), self.attempt())
        }
    }

    fn attempt(&self) -> u32 {
        u32::from_be_bytes(array(&self.bytes, 4).unwrap_or_default())
    }

    fn claimant(&self) -> Claimant {
        Claimant::from_bytes(array(&self.bytes, 8).unwrap_or_default())
    }

    fn fingerprint(&self) -> Fingerprint {
        Fingerprint::from_parts(self.bytes[3], array(&self.bytes, 24).unwrap_or_default())
    }

    fn caller(&self) -> Caller {
        Caller::from_bytes(array(&self.bytes, 56).unwrap_or_default())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_be_bytes(array(&self.bytes, at).unwrap_or_default())
    }

    fn has(&self, flag: u8) -> bool {
        self.bytes[2] & flag != 0
    }
}

/// Whether a record runs, by its bytes.
pub(super) fn runs(bytes: &[u8]) -> bool {
    bytes.get(1) == Some(&code(State::Running))
}

/// The state of a record of which only the head was read, and whether it is abandoned.
pub(super) fn glance(head: &[u8], left: i64) -> Option<(State, bool)> {
    let mut head = head.to_vec();
    // Without its payload, and whatever follows that, the head is a record by itself.
    head.get_mut(96..HEAD)?.fill(0);
    head[2] &= !(TOKEN | NOTE);
    let stored = Stored::read(head, left).ok()?;
    let lapsed = stored.u64(80) <= stored.age();
    (!stored.has_expired()).then_some((stored.state, stored.state == State::Running && lapsed))
}

/// A record to be written, in the parts between which the scripts put what only the server knows.
pub(super) struct Draft {
    /// Up to its creation.
    pub(super) front: Vec<u8>,
    /// Lease, span and the length of no payload.
    pub(super) times: [u8; 20],
    /// What follows a token's first expiry, or the note.
    pub(super) rare: Vec<u8>,
    /// How long it lives, ms.
    pub(super) span: u64,
    token: bool,
}

impl Draft {
    pub(super) fn issued(issue: &Issue) -> Self {
        let mut front = front(State::Issued, TOKEN, 0, Claimant::from_bytes([0; 16]));
        front.resize(CREATED, 0);
        let span = millis(issue.life);
        let mut rare = Vec::new();
        write_binding(&mut rare, &issue.binding);
        Self { front, times: times(0, span, 0), rare, span, token: true }
    }

    /// A claim that was granted; with a binding where the record is a token's.
    pub(super) fn running(claim: &Claim, attempt: u32, takeover: bool, binding: Option<&Binding>) -> Self {
        let mut flags = 0;
        for (flag, set) in [
            (AT_MOST_ONCE, claim.at_most_once),
            (TAKEOVER, takeover),
            (TOKEN, binding.is_some()),
            (NOTE, !claim.note.is_empty()),
        ] {
            flags |= if set { flag } else { 0 };
        }
        let mut front = front(State::Running, flags, attempt, claim.claimant);
        front[3] = claim.fingerprint.scheme();
        front.extend_from_slice(claim.fingerprint.digest());
        front.extend_from_slice(&claim.caller.to_bytes());
        let (lease, span) = lease_and_span(claim);
        let mut rare = Vec::new();
        if let Some(binding) = binding {
            write_binding(&mut rare, binding);
        }
        rare.extend_from_slice(&claim.note);
        Self { front, times: times(lease, span, 0), rare, span, token: binding.is_some() }
    }

    /// The whole, with nothing that only the server knows.
    pub(super) fn whole(&self) -> Vec<u8> {
        let expiry: &[u8] = if self.token { &[0; 8] } else { &[] };
        [&self.front, &[0; 8][..], &self.times, expiry, &self.rare].concat()
    }
}

/// Lease and span of a running record, in milliseconds.
pub(super) fn lease_and_span(claim: &Claim) -> (u64, u64) {
    (millis(claim.lease), millis(claim.lease.max(claim.horizon)))
}

/// Lease, span and length of the payload, as they stand in a record.
pub(super) fn times(lease: u64, span: u64, length: u32) -> [u8; 20] {
    let mut times = [0; 20];
    times[..8].copy_from_slice(&lease.to_be_bytes());
    times[8..16].copy_from_slice(&span.to_be_bytes());
    times[16..].copy_from_slice(&length.to_be_bytes());
    times
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(FOREVER).min(FOREVER)
}

fn front(state: State, flags: u8, attempt: u32, claimant: Claimant) -> Vec<u8> {
    let mut front = Vec::with_capacity(HEAD);
    front.extend_from_slice(&[VERSION, code(state), flags, 0]);
    front.extend_from_slice(&attempt.to_be_bytes());
    front.extend_from_slice(&claimant.to_bytes());
    front
}

fn code(state: State) -> u8 {
    match state {
        State::Issued => 0,
        State::Running => 1,
        State::Settled => 2,
        State::Released => 3,
    }
}

fn write_binding(rare: &mut Vec<u8>, binding: &Binding) {
    let length = |text: &str| u32::try_from(text.len()).unwrap_or(NO_PRINCIPAL).to_be_bytes();
    rare.extend_from_slice(&length(&binding.purpose));
    rare.extend_from_slice(binding.purpose.as_bytes());
    match &binding.principal {
        Some(principal) => {
            rare.extend_from_slice(&length(principal));
            rare.extend_from_slice(principal.as_bytes());
        }
        None => rare.extend_from_slice(&NO_PRINCIPAL.to_be_bytes()),
    }
}

/// The binding, and how many bytes follow it.
fn read_binding(rare: &[u8]) -> Option<(Option<Binding>, usize)> {
    let (purpose, rest) = read_text(rare.get(8..)?)?;
    let (principal, rest) = match rest.strip_prefix(&NO_PRINCIPAL.to_be_bytes()) {
        Some(rest) => (None, rest),
        None => read_text(rest).map(|(principal, rest)| (Some(principal), rest))?,
    };
    Some((Some(Binding::new(purpose, principal)), rest.len()))
}

/// A text that stands behind its length, and what follows it.
fn read_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

#[cfg(test)]
mod tests;
