//! The bounds of a store, and the counts that they apply to.
//!
//! Room is reserved before a record is written and given back when it is removed or has become smaller. What is free is
//! counted once for all shards; a shard takes some of it in advance (`Room`), so that most calls change no count that
//! threads share. Near a bound nothing is taken in advance, and what shards have left of it is collected before anything is
//! refused, so that a store holds as much as its bounds say.
//!
//! | bound | counts | when it is reached |
//! | --- | --- | --- |
//! | `capacity` | records of every state | a new key is refused, after expired and released records were removed |
//! | `max_bytes` | keys, optional fields, notes, payloads | a new key is refused; an answer becomes a tombstone |
//! | half of both | issued tokens | no further token is issued |
//! | share | records of one scope or principal, without released ones | a new key of this scope is refused |
//!
//! The counts may be ahead of the records for the length of a call, never behind: what is reserved is given back if the
//! write does not happen.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::value::State;

use super::{
    full::Full,
    record::{RecordChange, RecordDraft, RecordView, Records, Scoped, Weight},
    shares::Shares,
};

/// How many records, and how many bytes, a shard takes in advance.
const RECORDS_AHEAD: usize = 64;
const BYTES_AHEAD: usize = 64 * 1024;

/// Nothing is taken in advance if less is free than so many times what a shard would take.
const PLENTY: usize = 256;

/// Counts what is free of a store's room.
#[repr(align(128))]
pub(super) struct Capacity {
    /// Records that may still be added, without what the shards have in advance.
    records: AtomicUsize,
    /// Bytes that records may still take, without what the shards have in advance.
    bytes: AtomicUsize,
    /// Tokens that nobody has claimed, and their bytes below: they may hold half of the store.
    issued: AtomicUsize,
    /// The bytes of those tokens.
    issued_bytes: AtomicUsize,
    /// How many records there may be.
    max_records: usize,
    /// How many bytes the records may keep, beside their fixed size.
    max_bytes: usize,
    /// The records of each scope, if shares are bounded.
    shares: Option<Shares>,
}

/// What a shard has taken in advance. It changes only while the shard is locked.
#[derive(Default)]
pub(super) struct Room {
    records: usize,
    bytes: usize,
}

impl Capacity {
    /// Creates empty counts under these bounds.
    pub(super) fn new(capacity: usize, max_bytes: usize, share: Option<usize>) -> Self {
        Self {
            records: AtomicUsize::new(capacity),
            bytes: AtomicUsize::new(max_bytes),
            issued: AtomicUsize::new(0),
            issued_bytes: AtomicUsize::new(0),
            max_records: capacity,
            max_bytes,
            shares: share.map(Shares::new),
        }
    }

    /// Reserves room for a record, if there is any.
    pub(super) fn reserve(&self, room: &mut Room, record: &RecordDraft<'_>) -> Result<(), Full> {
        let Weight { state, bytes } = record.weight();
        if state == State::Issued {
            self.reserve_token(bytes)?;
        }
        let taken = self
            .take(room, bytes)
            .and_then(|()| self.reserve_share(record).inspect_err(|_| self.give_back(room, 1, bytes)));
        if taken.is_err() && state == State::Issued {
            self.release_token(bytes);
        }
        taken
    }

    /// Reserves room for more bytes in a record.
    pub(super) fn reserve_bytes(&self, room: &mut Room, bytes: usize) -> Result<(), Full> {
        if !ahead(&mut room.bytes, &self.bytes, bytes, BYTES_AHEAD) {
            return Err(Full::Bytes(bytes));
        }
        room.bytes -= bytes;
        Ok(())
    }

    /// Gives bytes back.
    pub(super) fn release_bytes(&self, room: &mut Room, bytes: usize) {
        if bytes > 0 {
            self.give_back(room, 0, bytes);
        }
    }

    /// Reserves a place in the scope's share for a record that is new, or that was released and runs again.
    pub(super) fn reserve_share(&self, record: &impl Scoped) -> Result<(), Full> {
        match &self.shares {
            Some(shares) if !shares.reserve(record) => Err(Full::Share),
            _ => Ok(()),
        }
    }

    /// Updates the counts after a record has changed, for which at most `growth` more bytes were reserved.
    ///
    /// Called while the shard is locked, right after the change, so that nobody sees counts of a state that the record
    /// is not in.
    #[inline]
    pub(super) fn update(&self, room: &mut Room, slot: u32, change: &RecordChange, growth: usize, records: &Records) {
        let (was, is) = (change.before.weight, change.after.weight);
        self.release_bytes(room, (was.bytes + growth).saturating_sub(is.bytes));
        if was.state == is.state {
            return;
        }
        if was.state == State::Issued {
            self.release_token(was.bytes);
        }
        match is.state {
            State::Released => {
                if let Some(record) = records.get(slot) {
                    self.release_share(&record);
                }
            }
            State::Issued => {
                // A token that is issued again is not refused.
                self.issued.fetch_add(1, Ordering::AcqRel);
                self.issued_bytes.fetch_add(is.bytes, Ordering::AcqRel);
            }
            _ => {}
        }
    }

    /// Gives back the room of a record that is to be removed.
    pub(super) fn release(&self, room: &mut Room, record: &RecordView<'_>) {
        let Weight { state, bytes } = record.weight();
        self.give_back(room, 1, bytes);
        if state == State::Issued {
            self.release_token(bytes);
        }
        if state != State::Released {
            self.release_share(record);
        }
    }

    /// Gives back what a shard has in advance; returns whether that was anything of what is missing.
    pub(super) fn collect(&self, room: &mut Room, missing: Full) -> bool {
        let Room { records, bytes } = std::mem::take(room);
        self.records.fetch_add(records, Ordering::AcqRel);
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        match missing {
            Full::Records => records > 0,
            Full::Bytes(_) => bytes > 0,
            Full::Tokens(_) | Full::Share => false,
        }
    }

    /// Returns whether what was missing is available by now.
    pub(super) fn has_room_for(&self, missing: Full) -> bool {
        match missing {
            Full::Records => self.records.load(Ordering::Acquire) > 0,
            Full::Bytes(bytes) => self.bytes.load(Ordering::Acquire) >= bytes,
            Full::Tokens(bytes) => {
                fits(&self.issued, 1, token_limit(self.max_records))
                    && fits(&self.issued_bytes, bytes, token_limit(self.max_bytes))
            }
            Full::Share => false,
        }
    }

    /// Returns whether what is missing would be available in an empty store.
    pub(super) fn can_ever_have(&self, missing: Full) -> bool {
        match missing {
            Full::Records => self.max_records > 0,
            Full::Bytes(bytes) => bytes <= self.max_bytes,
            Full::Tokens(bytes) => self.max_records > 0 && bytes <= token_limit(self.max_bytes),
            Full::Share => true,
        }
    }

    /// Returns how many records there may be.
    pub(super) fn capacity(&self) -> usize {
        self.max_records
    }

    /// Returns how many bytes the records may keep.
    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// Returns how many records there are, and how many bytes they keep, if the shards have `rooms` in advance.
    pub(super) fn used<'a>(&self, rooms: impl Iterator<Item = &'a Room>) -> (usize, usize) {
        let free = |count: &AtomicUsize| count.load(Ordering::Acquire);
        let free = (free(&self.records), free(&self.bytes));
        let (records, bytes) = rooms.fold(free, |(records, bytes), room| (records + room.records, bytes + room.bytes));
        (self.max_records - records, self.max_bytes - bytes)
    }

    #[cfg(test)]
    pub(super) fn holds_no_token(&self) -> bool {
        self.issued.load(Ordering::Acquire) == 0 && self.issued_bytes.load(Ordering::Acquire) == 0
    }

    /// Takes room for a record of so many bytes.
    #[inline]
    fn take(&self, room: &mut Room, bytes: usize) -> Result<(), Full> {
        if !ahead(&mut room.records, &self.records, 1, RECORDS_AHEAD) {
            return Err(Full::Records);
        }
        self.reserve_bytes(room, bytes)?;
        room.records -= 1;
        Ok(())
    }

    /// Gives room back: to the shard, or to all of them if the shard has enough or the store is nearly full.
    #[inline]
    fn give_back(&self, room: &mut Room, records: usize, bytes: usize) {
        room.records += records;
        room.bytes += bytes;
        behind(&mut room.records, &self.records, RECORDS_AHEAD);
        behind(&mut room.bytes, &self.bytes, BYTES_AHEAD);
    }

    /// Reserves room for an unclaimed token.
    fn reserve_token(&self, bytes: usize) -> Result<(), Full> {
        if !add(&self.issued, 1, token_limit(self.max_records)) {
            return Err(Full::Tokens(bytes));
        }
        if !add(&self.issued_bytes, bytes, token_limit(self.max_bytes)) {
            self.issued.fetch_sub(1, Ordering::AcqRel);
            return Err(Full::Tokens(bytes));
        }
        Ok(())
    }

    /// Gives back the room of an unclaimed token.
    fn release_token(&self, bytes: usize) {
        self.issued.fetch_sub(1, Ordering::AcqRel);
        self.issued_bytes.fetch_sub(bytes, Ordering::AcqRel);
    }

    /// Gives back the record's place in the share of its scope.
    fn release_share(&self, record: &impl Scoped) {
        if let Some(shares) = &self.shares {
            shares.release(record);
        }
    }
}

/// Returns the part that unclaimed tokens may take, so that a flood of them leaves room for running requests.
fn token_limit(whole: usize) -> usize {
    whole.div_ceil(2)
}

/// Makes a shard have `needed` at least, and `more` in advance if there is plenty. Returns whether it has.
#[inline]
fn ahead(room: &mut usize, free: &AtomicUsize, needed: usize, more: usize) -> bool {
    if *room >= needed {
        return true;
    }
    let missing = needed - *room;
    let mut taken = 0;
    let rest = |free: usize| {
        taken = if free / PLENTY >= more && free >= missing + more { missing + more } else { missing };
        free.checked_sub(taken)
    };
    let there = free.fetch_update(Ordering::AcqRel, Ordering::Acquire, rest).is_ok();
    *room += if there { taken } else { 0 };
    there
}

/// Gives back what a shard has too much of: anything if little is free, else what is beyond twice `more`.
#[inline]
fn behind(room: &mut usize, free: &AtomicUsize, more: usize) {
    let kept = if free.load(Ordering::Relaxed) / PLENTY < more { 0 } else { more };
    if *room > 2 * kept {
        free.fetch_add(*room - kept, Ordering::AcqRel);
        *room = kept;
    }
}

/// Returns whether `more` fits under `limit`.
fn fits(count: &AtomicUsize, more: usize, limit: usize) -> bool {
    count.load(Ordering::Acquire).saturating_add(more) <= limit
}

/// Adds `more` unless that exceeds `limit`; returns whether it did.
fn add(count: &AtomicUsize, more: usize, limit: usize) -> bool {
    let sum = |count: usize| count.checked_add(more).filter(|&sum| sum <= limit);
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum).is_ok()
}
