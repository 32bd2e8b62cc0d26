//! An entry as the rules see it (`head`), as operators see it (`record`), and its payload for a replay.

use std::time::{Duration, SystemTime};

use bytes::Bytes;

use crate::value::{Hold, Record, RecordHead, State};

use super::{AT_MOST_ONCE, CALLER_IS_NEW, MemoryRecord, PAYLOAD, TAKEOVER, moment::Moment};

impl MemoryRecord {
    /// Returns what decides about the end of its claim.
    #[inline]
    pub(in crate::store::memory) fn hold(&self, now: u64) -> Hold {
        Hold { state: self.state(), claimant: self.claimant, lapsed: self.mark.ms() <= now }
    }

    /// Returns the payload for a duplicate; `None` for a tombstone.
    pub(in crate::store::memory) fn payload(&self) -> Option<Bytes> {
        if self.flags & PAYLOAD == 0 {
            return None;
        }
        if let Some(long) = self.extra.as_ref().and_then(|extra| extra.payload.as_ref()) {
            return Some(long.clone());
        }
        // A copy of a few bytes costs less than two counts of owners.
        Some(Bytes::copy_from_slice(self.text.get(self.layout.payload_from()..).unwrap_or_default()))
    }

    /// Returns what decides about a claim.
    pub(in crate::store::memory) fn head(&self) -> RecordHead<'_> {
        let optional_fields = self.optional_fields();
        RecordHead {
            fingerprint: self.fingerprint,
            caller: optional_fields.caller,
            caller_is_new: self.flags & CALLER_IS_NEW != 0,
            secret: optional_fields.secret,
            origin: optional_fields.origin,
            at_most_once: self.flags & AT_MOST_ONCE != 0,
            takeover: self.flags & TAKEOVER != 0,
            lease_ends: self.mark.ms(),
            expires: self.expires(),
            binding: self.token().map(|token| &token.binding),
            ..RecordHead::new(self.state(), self.claimant, self.attempt)
        }
    }

    /// Returns the record for operators, at `now`.
    pub(in crate::store::memory) fn record(&self, now: u64) -> Record {
        let left = |until: Moment| Duration::from_millis(until.ms().saturating_sub(now));
        let time = |moment: Moment| SystemTime::UNIX_EPOCH + Duration::from_millis(moment.ms());
        let (state, optional_fields) = (self.state(), self.optional_fields());
        let running = |time| if state == State::Running { time } else { Duration::ZERO };
        Record {
            lease: running(Duration::from_millis(optional_fields.lease)),
            lease_left: running(left(self.mark)),
            lapsed_for: running(Duration::from_millis(now.saturating_sub(self.mark.ms()))),
            created: time(self.created),
            settled: (state == State::Settled).then(|| time(self.mark)),
            expires_in: left(self.expires),
            payload: self.payload(),
            note: self.extra.as_ref().map(|extra| extra.note.clone()).unwrap_or_default(),
            trace: optional_fields.trace,
            ..Record::from(&self.head())
        }
    }
}
