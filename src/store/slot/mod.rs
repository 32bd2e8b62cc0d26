//! The rules of a record's life for stores that read a record, change it, and write it back.

mod bytes;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::value::{
    Behalf, Claim, Claimant, Ending, Hold, Issue, Record, Release, Settlement, StoreError, StoreErrorKind,
    StoredRecord, Verdict, judge,
};

use super::{Claimed, Finished, Issued, Renewed};

use super::support::bytes::DecodeError;

/// The place of a key's record, as a store has read it at one moment.
///
/// Each method applies the rules of the method of [`Store`](super::Store) or [`StoreAdmin`](super::StoreAdmin) of the
/// same name: it returns the answer, and changes the slot if the record changes. So a store reads the record of a key,
/// calls the method, and writes the record back if the slot [has changed](Self::is_changed), all in one atomic step:
/// under a lock, or by a compare-and-set that begins anew if the record was changed in between.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::store::{Claim, Claimed, Origin, RecordSlot, Settlement};
///
/// # fn main() -> Result<(), tower_idempotency::StoreError> {
/// let (lease, day) = (Duration::from_secs(30), Duration::from_secs(86_400));
/// let now = 1_795_960_000_000; // the store's clock, in milliseconds
///
/// // The key is free, so the claim is granted.
/// let mut slot = RecordSlot::from_bytes(None, now)?;
/// let claim = Claim::new(lease, day);
/// assert!(matches!(slot.claim(&claim), Claimed::Granted(_)));
/// let written = slot.to_bytes();
///
/// // A second later the claim is settled.
/// let mut slot = RecordSlot::from_bytes(written.as_deref(), now + 1_000)?;
/// slot.settle(&Settlement::new(claim.claimant, Some("paid".into()), day));
/// let written = slot.to_bytes();
///
/// // A duplicate receives the kept answer, and nothing has to be written.
/// let mut slot = RecordSlot::from_bytes(written.as_deref(), now + 2_000)?;
/// assert_eq!(slot.claim(&Claim::new(lease, day)), Claimed::Settled(Some("paid".into()), Origin::NONE));
/// assert!(!slot.is_changed());
///
/// // It expires by itself.
/// assert!(RecordSlot::from_bytes(written.as_deref(), now + 86_401_000)?.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a changed slot has to be written back"]
pub struct RecordSlot {
    now: u64,
    content: Content,
    changed: bool,
}

#[derive(Clone)]
enum Content {
    Empty,
    Record(Box<StoredRecord>),
    /// A record of a later version of this crate: it is never matched and never changed.
    Newer(Box<[u8]>),
}

impl RecordSlot {
    /// Creates the slot of a record that was read at `now`, in milliseconds of the store's own clock. A record that has
    /// expired counts as absent.
    pub fn new(record: Option<StoredRecord>, now: u64) -> Self {
        let record = record.filter(|record| record.expires > now);
        Self { now, content: record.map_or(Content::Empty, |record| Content::Record(Box::new(record))), changed: false }
    }

    /// Creates the slot of a record that was written by [`to_bytes`](Self::to_bytes) and read at `now`.
    ///
    /// A record of a later version of this crate is neither matched nor changed: claims are answered with
    /// [`Claimed::Incompatible`].
    ///
    /// # Errors
    ///
    /// Returns an error of the kind [`Corrupt`](StoreErrorKind::Corrupt) if the bytes are not those of a record.
    pub fn from_bytes(bytes: Option<&[u8]>, now: u64) -> Result<Self, StoreError> {
        match bytes.map(bytes::read).transpose() {
            Ok(record) => Ok(Self::new(record, now)),
            Err(DecodeError::Newer) => {
                let content = Content::Newer(bytes.unwrap_or_default().into());
                Ok(Self { now, content, changed: false })
            }
            Err(DecodeError::Corrupt) => Err(corrupt("the bytes are not those of a record")),
        }
    }

    /// Returns the record as bytes, or `None` if the key has none. Their layout is this crate's own; each later version
    /// of the crate reads it.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        match &self.content {
            Content::Empty => None,
            Content::Record(record) => Some(bytes::write(record)),
            Content::Newer(bytes) => Some(bytes.to_vec()),
        }
    }

    /// Returns whether a method has changed the slot, so that it has to be written back: the record if there is one,
    /// and its removal if it [is empty](Self::is_empty).
    #[must_use]
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// Returns whether the key has no record. What was read has expired then, if anything was, and may be removed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self.content, Content::Empty)
    }

    /// Returns the record.
    #[must_use]
    pub fn record(&self) -> Option<&StoredRecord> {
        match &self.content {
            Content::Record(record) => Some(record),
            Content::Empty | Content::Newer(_) => None,
        }
    }

    /// Returns the record.
    #[must_use]
    pub fn into_record(self) -> Option<StoredRecord> {
        match self.content {
            Content::Record(record) => Some(*record),
            Content::Empty | Content::Newer(_) => None,
        }
    }

    /// Returns whether the record is running under `holder`, alive or lapsed. If it is not,
    /// [`Store::changed`](super::Store::changed) resolves.
    #[must_use]
    pub fn is_running_under(&self, holder: Claimant) -> bool {
        self.hold().is_some_and(|hold| hold.runs_under(holder))
    }

    /// Issues a record; see [`Store::issue`](super::Store::issue).
    pub fn issue(&mut self, issue: &Issue) -> Issued {
        if !self.is_empty() {
            return Issued::Exists;
        }
        self.put(StoredRecord::issued(issue, self.now));
        Issued::Done
    }

    /// Claims the key; see [`Store::claim`](super::Store::claim).
    pub fn claim(&mut self, claim: &Claim) -> Claimed {
        if matches!(self.content, Content::Newer(_)) {
            return Claimed::Incompatible;
        }
        let record = self.record();
        let verdict = judge(record.map(StoredRecord::head).as_ref(), claim, self.now);
        if let Verdict::Grant(granted) = verdict {
            self.put(StoredRecord::running(record, claim, granted, self.now));
        }
        Claimed::from_verdict(verdict, || self.record().and_then(|record| record.payload.clone()))
    }

    /// Renews a running claim; see [`Store::renew`](super::Store::renew).
    pub fn renew(&mut self, claim: &Claim) -> Renewed {
        if !self.is_running_under(claim.claimant) {
            return Renewed::Lost;
        }
        self.change(|record, now| record.renew(claim, now));
        Renewed::Done
    }

    /// Ends a running claim with an answer; see [`Store::settle`](super::Store::settle).
    pub fn settle(&mut self, settlement: &Settlement) -> Finished {
        self.end_settled(Behalf::Own, settlement)
    }

    /// Ends a running claim without an answer; see [`Store::release`](super::Store::release).
    pub fn release(&mut self, release: &Release) -> Finished {
        self.end_released(Behalf::Own, release)
    }

    /// Settles an abandoned record on behalf of its runner; see
    /// [`StoreAdmin::settle_as`](super::StoreAdmin::settle_as).
    pub fn settle_as(&mut self, seen: Claimant, settlement: &Settlement) -> Finished {
        self.end_settled(Behalf::Of(seen), settlement)
    }

    /// Releases an abandoned record on behalf of its runner; see
    /// [`StoreAdmin::release_as`](super::StoreAdmin::release_as).
    pub fn release_as(&mut self, seen: Claimant, release: &Release) -> Finished {
        self.end_released(Behalf::Of(seen), release)
    }

    /// Removes the record, and returns whether there was one; see [`StoreAdmin::forget`](super::StoreAdmin::forget).
    pub fn forget(&mut self) -> bool {
        let had_record = !self.is_empty();
        self.content = Content::Empty;
        self.changed |= had_record;
        had_record
    }

    /// Returns the record as it is read; see [`StoreAdmin::inspect`](super::StoreAdmin::inspect).
    ///
    /// # Errors
    ///
    /// Returns an error of the kind [`Corrupt`](StoreErrorKind::Corrupt) if the record is one of a later version of
    /// this crate.
    pub fn inspect(&self) -> Result<Option<Record>, StoreError> {
        match &self.content {
            Content::Empty => Ok(None),
            Content::Record(record) => Ok(Some(record.read(self.now))),
            Content::Newer(_) => Err(corrupt("the record is one of a later version of this crate")),
        }
    }

    fn end_settled(&mut self, behalf: Behalf, settlement: &Settlement) -> Finished {
        let ending = self.hold().map(|hold| hold.settle(settlement.claimant, behalf));
        self.end(ending, |record, now| record.settle(settlement, now))
    }

    fn end_released(&mut self, behalf: Behalf, release: &Release) -> Finished {
        let ending = self.hold().map(|hold| hold.release(release.claimant, behalf));
        self.end(ending, |record, now| record.release(release, now))
    }

    fn end(&mut self, ending: Option<Ending>, end: impl FnOnce(&mut StoredRecord, u64)) -> Finished {
        match ending {
            Some(Ending::Write) => {
                self.change(end);
                Finished::Done
            }
            Some(Ending::AlreadyDone) => Finished::AlreadyDone,
            Some(Ending::Refused) | None => {
                Finished::Refused(self.record().map(|record| Box::new(record.read(self.now))))
            }
        }
    }

    fn hold(&self) -> Option<Hold> {
        self.record().map(|record| record.hold(self.now))
    }

    fn change(&mut self, change: impl FnOnce(&mut StoredRecord, u64)) {
        if let Content::Record(record) = &mut self.content {
            change(record, self.now);
            self.changed = true;
            if record.expires <= self.now {
                self.content = Content::Empty;
            }
        }
    }

    /// Puts a record in. One that has expired already leaves the slot empty.
    fn put(&mut self, record: StoredRecord) {
        *self = Self { changed: true, ..Self::new(Some(record), self.now) };
    }
}

fn corrupt(message: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, message).without_effect()
}

impl fmt::Debug for RecordSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let content: &dyn fmt::Debug = match &self.content {
            Content::Empty => &"empty",
            Content::Record(record) => record,
            Content::Newer(_) => &"a record of a later version",
        };
        f.debug_struct("RecordSlot").field("content", content).field("changed", &self.changed).finish_non_exhaustive()
    }
}
