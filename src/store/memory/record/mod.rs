//! A record as a memory store keeps it, in few bytes.
//!
//! - `text`: the key, what few claims bring along, and a short payload, in one allocation.
//! - `extra`: the fields that few records have.
//! - `moment`: times in six bytes.
//! - `read`: an entry as the rules and its readers see it.
//!
//! The layout is chosen for the size of a million records: an entry is a fixed struct with one allocation for its
//! texts. A replay copies a short payload, which costs less than counting its owners.
//!
//! | part of an entry | holds |
//! | --- | --- |
//! | `text`, `layout` | key, marks, short payload; where each begins |
//! | `extra` | note, token, long payload; `None` for most records |
//! | `namespace`, `claimant`, `fingerprint`, `attempt`, `flags` | what the rules compare |
//! | `created`, `mark`, `expires` | three times of six bytes; `mark` is the end of the lease of a running record, the time of the end of a settled one |
//! | `previous`, `next`, `bucket` | its neighbours in the list of a wheel |
//!
//! A write replaces whole parts. Whatever it replaces and whose destructor could be the application's (`Extra`, which
//! holds payloads and notes) is returned to the caller and dropped after the lock.

mod extra;
mod moment;
mod read;
#[cfg(test)]
mod tests;
mod text;
mod weight;

use std::{mem, time::Duration};

use bytes::Bytes;

use crate::value::{Binding, Claim, Claimant, Fingerprint, Granted, RecordKey, State, Undone, released};

use self::{
    extra::TokenFields,
    moment::Moment,
    text::{Layout, OptionalFields, join},
};

pub(super) use self::{
    extra::Extra,
    moment::{FOREVER, later},
    weight::Weight,
};

/// No slot: the end of a list.
pub(super) const NIL: u32 = u32::MAX;

/// Payloads up to this size, in bytes, are joined to the key in one allocation, and a replay copies them. A longer
/// payload is kept in its own buffer, which replays share, so that it is neither copied nor freed while a lock is held.
const JOINED_BYTES: usize = 4096;

const STATE: u8 = 0b11;
const AT_MOST_ONCE: u8 = 1 << 2;
const TAKEOVER: u8 = 1 << 3;
const CALLER_IS_NEW: u8 = 1 << 4;
const PAYLOAD: u8 = 1 << 5;
const WAITED_FOR: u8 = 1 << 6;

/// A record as it is kept. There may be millions, so every byte counts; see the test of its size.
pub(super) struct MemoryRecord {
    /// The key, the marks, and the payload if it is short.
    text: Box<[u8]>,
    extra: Option<Box<Extra>>,
    /// The number of the namespace.
    namespace: u32,
    attempt: u32,
    /// Neighbours in a wheel's list, and which list it is.
    pub(super) previous: u32,
    pub(super) next: u32,
    pub(super) bucket: u16,
    layout: Layout,
    claimant: Claimant,
    fingerprint: Fingerprint,
    /// The state in two bits, then one bit each for the flags above.
    flags: u8,
    created: Moment,
    /// For a running record, when the lease lapses; for a settled one, since when.
    mark: Moment,
    expires: Moment,
}

impl MemoryRecord {
    /// Creates an entry that [`issue`](Self::issue) or [`grant`](Self::grant) has still to fill in.
    pub(super) fn new(namespace: u32, key: &RecordKey, now: u64) -> Self {
        let text: Box<[u8]> = key.as_bytes().into();
        Self {
            layout: Layout::of_key(&text),
            text,
            extra: None,
            namespace,
            attempt: 0,
            previous: NIL,
            next: NIL,
            bucket: 0,
            claimant: Claimant::NONE,
            fingerprint: Fingerprint::OFF,
            flags: State::Issued as u8,
            created: Moment::new(now),
            mark: Moment::new(0),
            expires: Moment::new(FOREVER),
        }
    }

    /// Makes the entry an issued token.
    pub(super) fn issue(&mut self, binding: Binding, expires: u64) {
        self.expires = Moment::new(expires);
        self.extra = Some(Box::new(Extra { token: Some(TokenFields { binding, expires }), ..Extra::default() }));
    }

    /// Assigns the entry to the claim. Returns what the last claim left, to be dropped while no lock is held.
    pub(super) fn grant(&mut self, claim: &Claim, granted: &Granted, now: u64) -> Option<Extra> {
        self.set_state(State::Running);
        self.set(AT_MOST_ONCE, claim.at_most_once);
        self.set(TAKEOVER, granted.takeover);
        self.set(CALLER_IS_NEW, granted.caller_is_new);
        self.set_optional_fields(&OptionalFields::of(claim, granted));
        self.claimant = claim.claimant;
        self.fingerprint = claim.fingerprint;
        self.attempt = granted.attempt;
        self.renew(claim, now);
        let token = self.extra.as_mut().and_then(|extra| extra.token.take());
        let rare = token.is_some() || !claim.note.is_empty();
        let extra = rare.then(|| {
            // A slice would keep the server's whole read buffer.
            let note = Bytes::copy_from_slice(&claim.note);
            Box::new(Extra { note, token, payload: None })
        });
        mem::replace(&mut self.extra, extra).map(|old| *old)
    }

    /// Returns how many bytes more the entry takes once it is assigned to the claim.
    pub(super) fn growth(&self, claim: &Claim, granted: &Granted) -> usize {
        let token = self.token().map_or(0, TokenFields::bytes);
        let granted = self.key().len() + OptionalFields::of(claim, granted).bytes() + claim.note.len() + token;
        granted.saturating_sub(self.bytes())
    }

    /// Sets lease and expiry anew.
    pub(super) fn renew(&mut self, claim: &Claim, now: u64) {
        self.mark = Moment::new(later(now, claim.lease));
        self.expires = Moment::new(later(now, claim.lifetime()));
    }

    /// Ends the claim with an answer. A long payload is kept as it came; a short one is joined to the key.
    pub(super) fn settle(&mut self, claimant: Claimant, payload: Option<&Bytes>, retention: Duration, now: u64) {
        self.set_state(State::Settled);
        self.claimant = claimant;
        self.mark = Moment::new(now);
        self.expires = Moment::new(later(now, retention));
        self.set(PAYLOAD, payload.is_some());
        match payload {
            Some(payload) if payload.len() > JOINED_BYTES => {
                self.extra.get_or_insert_default().payload = Some(payload.clone());
            }
            Some(payload) if !payload.is_empty() => self.text = join(&self.text, payload),
            _ => {}
        }
    }

    /// Ends the claim without an answer. A token is issued again, with its first expiry.
    pub(super) fn release(&mut self, claimant: Claimant, keep: Duration, now: u64) {
        self.claimant = claimant;
        let (state, expires) = released(self.token().map(|token| token.expires), later(now, keep));
        self.set_state(state);
        self.expires = Moment::new(expires);
    }

    /// Takes back what the last claim of a released entry has changed.
    pub(super) fn undo(&mut self, left: &Undone) {
        let Undone { attempt, caller, secret, origin } = *left;
        self.attempt = attempt;
        self.set(CALLER_IS_NEW, false);
        self.set_optional_fields(&OptionalFields { caller, secret, origin, ..self.optional_fields() });
    }

    /// Returns whether it is the entry of this key in this namespace.
    pub(super) fn is(&self, namespace: u32, key: &[u8]) -> bool {
        self.namespace == namespace && self.key() == key
    }

    /// Returns the bytes of its key.
    pub(super) fn key(&self) -> &[u8] {
        &self.text[..self.layout.key_bytes()]
    }

    pub(super) fn namespace(&self) -> u32 {
        self.namespace
    }

    pub(super) fn state(&self) -> State {
        match self.flags & STATE {
            0 => State::Issued,
            1 => State::Running,
            2 => State::Settled,
            _ => State::Released,
        }
    }

    /// Returns how many bytes it keeps beside its fixed size: key, note, payload and the fields that few records have.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.extra.as_ref().map_or(0, |extra| extra.bytes())
    }

    /// Returns how it counts in `Capacity`.
    pub(super) fn weight(&self) -> Weight {
        Weight { state: self.state(), bytes: self.bytes() }
    }

    /// Passes the scope to whose share it counts, if any, to `see`: the principal of a token, the scope of another
    /// record.
    pub(super) fn with_scope<T>(&self, see: impl FnOnce(&str) -> T) -> Option<T> {
        match self.token() {
            Some(token) => token.binding.principal.as_deref().map(see),
            None => RecordKey::from_bytes(self.key())?.scope().map(see),
        }
    }

    pub(super) fn claimant(&self) -> Claimant {
        self.claimant
    }

    pub(super) fn expires(&self) -> u64 {
        self.expires.ms()
    }

    /// Returns whether it is running with a lease that has lapsed.
    pub(super) fn is_abandoned(&self, now: u64) -> bool {
        self.state() == State::Running && self.mark.ms() <= now
    }

    pub(super) fn is_waited_for(&self) -> bool {
        self.flags & WAITED_FOR != 0
    }

    /// Sets whether the shard has waiters for it, so that a change without waiters looks nothing up.
    pub(super) fn set_waited_for(&mut self, waited_for: bool) {
        self.set(WAITED_FOR, waited_for);
    }

    /// Returns what may have destructors of the application, to be dropped while no lock is held.
    pub(super) fn into_extra(self) -> Option<Extra> {
        self.extra.map(|extra| *extra)
    }

    /// Returns its binding and first expiry, if it is a token.
    fn token(&self) -> Option<&TokenFields> {
        self.extra.as_ref()?.token.as_ref()
    }

    /// Returns what few claims bring.
    fn optional_fields(&self) -> OptionalFields {
        self.layout.optional_fields(&self.text)
    }

    /// Sets the marks of an entry that has no payload yet.
    fn set_optional_fields(&mut self, optional_fields: &OptionalFields) {
        if *optional_fields != self.optional_fields() {
            (self.layout, self.text) = optional_fields.write(self.key());
        }
    }

    fn set_state(&mut self, state: State) {
        self.flags = self.flags & !STATE | state as u8;
    }

    fn set(&mut self, flag: u8, on: bool) {
        self.flags = self.flags & !flag | if on { flag } else { 0 };
    }
}
