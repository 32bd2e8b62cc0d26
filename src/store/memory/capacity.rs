//! The bounds of a store, and the counts that they apply to.
//!
//! Room is reserved before a record is written and given back when it is removed or has become smaller. A reservation
//! is one atomic update that fails at the bound, so that two shards cannot exceed it together.
//!
//! | bound | counts | when it is reached |
//! | --- | --- | --- |
//! | `capacity` | records of every state | a new key is refused, after expired and released records were removed |
//! | `max_bytes` | keys, marks, notes, payloads | a new key is refused; an answer becomes a tombstone |
//! | half of both | issued tokens | no further token is issued |
//! | share | records of one scope or principal, without released ones | a new key of this scope is refused |
//!
//! The counts may be ahead of the records for the length of a call, never behind: what is reserved is given back if the
//! write does not happen.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::value::{State, StoreError, StoreErrorKind};

use super::{
    record::{MemoryRecord, Weight},
    shares::Shares,
};

/// Counts the records of all shards, and the bytes that they keep. A count changes only while the shard of its record
/// is locked.
#[repr(align(128))]
pub(super) struct Capacity {
    /// All records.
    used: AtomicUsize,
    /// What all records keep, beside their fixed size.
    bytes: AtomicUsize,
    /// Released records, which may be dropped for room.
    released: AtomicUsize,
    /// Tokens that nobody has claimed, and their bytes below: they may hold half of the store.
    issued: AtomicUsize,
    /// The bytes of those tokens.
    issued_bytes: AtomicUsize,
    /// The bound on `used`.
    max_records: usize,
    /// The bound on `bytes`.
    max_bytes: usize,
    /// The records of each scope, if shares are bounded.
    shares: Option<Shares>,
}

/// What is missing for a record, or for more bytes in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Room for one more record.
    Records,
    /// Room for so many more bytes.
    Bytes(usize),
    /// Room for one more token, of so many bytes.
    Tokens(usize),
    /// Room in what the scope of the record may hold.
    Share,
}

impl Full {
    /// Returns the error that a key was refused.
    #[cold]
    pub(super) fn of_a_key(self) -> StoreError {
        let (kind, message) = match self {
            Self::Records => (StoreErrorKind::Full, "the memory store has no room for another record; see `capacity`"),
            Self::Bytes(_) => {
                (StoreErrorKind::Full, "the memory store has no bytes left for a record; see `max_bytes`")
            }
            Self::Tokens(_) => (
                StoreErrorKind::Full,
                "unclaimed tokens hold half of the memory store, and more are not issued; see `capacity` and \
                 `share_per_scope`, or sign tokens instead of storing them",
            ),
            Self::Share => (
                StoreErrorKind::TooManyKeys,
                "a scope holds as many records of the memory store as it may; see `share_per_scope`",
            ),
        };
        StoreError::new(kind, message)
    }

    /// Returns the error that an answer cannot be kept.
    #[cold]
    pub(super) fn of_an_answer(self) -> StoreError {
        match self {
            Self::Bytes(bytes) => {
                let message = format!("the memory store has no room for an answer of {bytes} bytes; see `max_bytes`");
                StoreError::new(StoreErrorKind::TooLarge, message)
            }
            other => other.of_a_key(),
        }
    }
}

impl Capacity {
    /// Creates empty counts under these bounds.
    pub(super) fn new(capacity: usize, max_bytes: usize, share: Option<usize>) -> Self {
        Self {
            used: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            released: AtomicUsize::new(0),
            issued: AtomicUsize::new(0),
            issued_bytes: AtomicUsize::new(0),
            max_records: capacity,
            max_bytes,
            shares: share.map(Shares::new),
        }
    }

    /// Reserves room for a record, if there is any.
    pub(super) fn reserve(&self, entry: &MemoryRecord) -> Result<(), Full> {
        let bytes = entry.bytes();
        if entry.state() == State::Issued {
            self.reserve_token(bytes)?;
        }
        let taken = self
            .reserve_record(bytes)
            .and_then(|()| self.reserve_share(entry).inspect_err(|_| self.release_record(bytes)));
        if taken.is_err() && entry.state() == State::Issued {
            self.release_token(bytes);
        }
        taken
    }

    /// Reserves room for more bytes in a record.
    pub(super) fn reserve_bytes(&self, bytes: usize) -> Result<(), Full> {
        if bytes == 0 || add(&self.bytes, bytes, self.max_bytes) { Ok(()) } else { Err(Full::Bytes(bytes)) }
    }

    /// Releases bytes.
    pub(super) fn release_bytes(&self, bytes: usize) {
        if bytes > 0 {
            self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Reserves a place in the scope's share for a record that was released and runs again.
    pub(super) fn reserve_share(&self, entry: &MemoryRecord) -> Result<(), Full> {
        match &self.shares {
            Some(shares) if !shares.reserve(entry) => Err(Full::Share),
            _ => Ok(()),
        }
    }

    /// Updates the counts after a record has changed, for which at most `growth` more bytes were reserved.
    ///
    /// Called while the shard is locked, right after the change, so that nobody sees counts of a state that the record
    /// is not in.
    pub(super) fn update(&self, entry: &MemoryRecord, was: Weight, growth: usize) {
        let is = entry.weight();
        self.release_bytes((was.bytes + growth).saturating_sub(is.bytes));
        if was.state == is.state {
            return;
        }
        match was.state {
            State::Released => drop(self.released.fetch_sub(1, Ordering::AcqRel)),
            State::Issued => self.release_token(was.bytes),
            _ => {}
        }
        match is.state {
            State::Released => {
                self.released.fetch_add(1, Ordering::AcqRel);
                self.release_share(entry);
            }
            State::Issued => {
                // A token that is issued again is not refused.
                self.issued.fetch_add(1, Ordering::AcqRel);
                self.issued_bytes.fetch_add(is.bytes, Ordering::AcqRel);
            }
            _ => {}
        }
    }

    /// Releases the room of a record that is gone.
    pub(super) fn release(&self, entry: &MemoryRecord) {
        let weight = entry.weight();
        self.release_record(weight.bytes);
        match weight.state {
            State::Released => drop(self.released.fetch_sub(1, Ordering::AcqRel)),
            State::Issued => self.release_token(weight.bytes),
            _ => {}
        }
        if weight.state != State::Released {
            self.release_share(entry);
        }
    }

    /// Returns whether what was missing is available by now.
    pub(super) fn has_room_for(&self, missing: Full) -> bool {
        match missing {
            Full::Records => self.used() < self.max_records,
            Full::Bytes(bytes) => fits(&self.bytes, bytes, self.max_bytes),
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

    /// Returns whether there is a released record to drop.
    pub(super) fn has_released(&self) -> bool {
        self.released.load(Ordering::Acquire) > 0
    }

    /// Returns how many records there are.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Returns how many records there may be.
    pub(super) fn capacity(&self) -> usize {
        self.max_records
    }

    /// Returns how many bytes the records keep.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Acquire)
    }

    /// Returns how many bytes the records may keep.
    pub(super) fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    #[cfg(test)]
    pub(super) fn holds_no_token(&self) -> bool {
        self.issued.load(Ordering::Acquire) == 0 && self.issued_bytes.load(Ordering::Acquire) == 0
    }

    /// Reserves room for a record of so many bytes.
    fn reserve_record(&self, bytes: usize) -> Result<(), Full> {
        if !add(&self.used, 1, self.max_records) {
            return Err(Full::Records);
        }
        if !add(&self.bytes, bytes, self.max_bytes) {
            self.used.fetch_sub(1, Ordering::AcqRel);
            return Err(Full::Bytes(bytes));
        }
        Ok(())
    }

    /// Gives back the room of a record of so many bytes.
    fn release_record(&self, bytes: usize) {
        self.used.fetch_sub(1, Ordering::AcqRel);
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
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
    fn release_share(&self, entry: &MemoryRecord) {
        if let Some(shares) = &self.shares {
            shares.release(entry);
        }
    }
}

/// Returns the part that unclaimed tokens may take, so that a flood of them leaves room for running requests.
fn token_limit(whole: usize) -> usize {
    whole.div_ceil(2)
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
