//! A record as the rules see it (`head`), as operators see it (`record`), and its payload for a replay.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::value::{Hold, Record, RecordHead, State};

use super::{
    Extra,
    extra::TokenFields,
    head::{AT_MOST_ONCE, CALLER_IS_NEW, Head, PAYLOAD, TAKEOVER, WAITED_FOR},
    scoped::{Scoped, scope},
    text::{self, OptionalFields},
    weight::Weight,
};

/// A record in its block.
pub(in crate::store::memory) struct RecordView<'a> {
    pub(super) head: Head,
    /// Key, optional fields and payload.
    pub(super) text: &'a [u8],
    pub(super) extra: Option<&'a Extra>,
}

impl RecordView<'_> {
    /// Returns the bytes of its key.
    #[inline]
    pub(in crate::store::memory) fn key(&self) -> &[u8] {
        self.text.get(..usize::from(self.head.key_bytes)).unwrap_or_default()
    }

    #[inline]
    pub(in crate::store::memory) fn state(&self) -> State {
        self.head.state()
    }

    #[inline]
    pub(in crate::store::memory) fn expires(&self) -> u64 {
        self.head.expires
    }

    /// Returns whether it is running with a lease that has lapsed.
    pub(in crate::store::memory) fn is_abandoned(&self, now: u64) -> bool {
        self.state() == State::Running && self.head.mark <= now
    }

    /// Returns whether the shard has waiters for it, so that a change without waiters looks nothing up.
    #[inline]
    pub(in crate::store::memory) fn is_waited_for(&self) -> bool {
        self.head.has(WAITED_FOR)
    }

    /// Returns how it counts: with the bytes that it keeps beside its fixed size.
    #[inline]
    pub(in crate::store::memory) fn weight(&self) -> Weight {
        self.head.summary(self.extra.map_or(0, Extra::bytes)).weight
    }

    /// Returns what decides about the end of its claim.
    #[inline]
    pub(in crate::store::memory) fn hold(&self, now: u64) -> Hold {
        Hold { state: self.state(), claimant: self.head.claimant, lapsed: self.head.mark <= now }
    }

    /// Returns the payload for a duplicate; `None` for a tombstone.
    pub(in crate::store::memory) fn payload(&self) -> Option<Bytes> {
        if !self.head.has(PAYLOAD) {
            return None;
        }
        if let Some(long) = self.extra.and_then(|extra| extra.payload.as_ref()) {
            return Some(long.clone());
        }
        let from = usize::from(self.head.key_bytes) + text::bytes(self.head.flags);
        // A copy of a few bytes costs less than two counts of owners.
        let payload = self.text.get(from..from + usize::from(self.head.payload_bytes));
        Some(Bytes::copy_from_slice(payload.unwrap_or_default()))
    }

    /// Returns what decides about a claim.
    #[inline]
    pub(in crate::store::memory) fn head(&self) -> RecordHead<'_> {
        let fields = self.optional_fields();
        RecordHead {
            fingerprint: self.head.fingerprint,
            caller: fields.caller,
            caller_is_new: self.head.has(CALLER_IS_NEW),
            secret: fields.secret,
            origin: fields.origin,
            at_most_once: self.head.has(AT_MOST_ONCE),
            takeover: self.head.has(TAKEOVER),
            lease_ends: self.head.mark,
            expires: self.head.expires,
            binding: self.token().map(|token| &token.binding),
            ..RecordHead::new(self.state(), self.head.claimant, self.head.attempt)
        }
    }

    /// Returns the record for operators, at `now`.
    pub(in crate::store::memory) fn record(&self, now: u64) -> Record {
        let left = |until: u64| Duration::from_millis(until.saturating_sub(now));
        let time = |moment| SystemTime::UNIX_EPOCH + Duration::from_millis(moment);
        let (state, fields) = (self.state(), self.optional_fields());
        let running = |time| if state == State::Running { time } else { Duration::ZERO };
        Record {
            lease: running(Duration::from_millis(fields.lease)),
            lease_left: running(left(self.head.mark)),
            lapsed_for: running(Duration::from_millis(now.saturating_sub(self.head.mark))),
            created: time(self.head.created),
            settled: (state == State::Settled).then(|| time(self.head.mark)),
            expires_in: left(self.head.expires),
            payload: self.payload(),
            note: self.extra.map(|extra| extra.note.clone()).unwrap_or_default(),
            trace: fields.trace,
            ..Record::from(&self.head())
        }
    }

    /// Returns its binding and first expiry, if it is a token.
    pub(super) fn token(&self) -> Option<&TokenFields> {
        self.extra?.token.as_ref()
    }

    pub(super) fn created(&self) -> u64 {
        self.head.created
    }

    /// Returns what few claims bring.
    #[inline]
    pub(super) fn optional_fields(&self) -> OptionalFields {
        OptionalFields::read(self.head.flags, self.behind_key())
    }

    fn behind_key(&self) -> &[u8] {
        self.text.get(usize::from(self.head.key_bytes)..).unwrap_or_default()
    }
}

impl Scoped for RecordView<'_> {
    fn namespace(&self) -> u32 {
        text::namespace(self.head.flags, self.behind_key())
    }

    fn with_scope<T>(&self, see: impl FnOnce(&str) -> T) -> Option<T> {
        scope(self.extra, self.key(), see)
    }
}
