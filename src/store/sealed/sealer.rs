//! What is sealed and opened of the arguments and the results of a store's verbs.

use bytes::Bytes;

use crate::{
    store::{Claimed, FailedAttempt, Finished},
    value::{Claim, Record, RecordKey, SEAL_MARK, SealingKeyId, Settlement, StoreError, StoreErrorKind},
};

use super::keys::{SealingKeys, Unopened};

/// Stands for bytes that are not sealed where only sealed ones are accepted: the mark without a key.
const REFUSED: &[u8] = &SEAL_MARK;

/// The keys, and what they are used for.
#[derive(Clone, Debug)]
pub(super) struct Sealer {
    pub(super) keys: SealingKeys,
    /// What is sealed is bound to this name, beside its record's key.
    pub(super) name: Box<str>,
    /// Whether anything is sealed; what is sealed already is opened in any case.
    pub(super) seals: bool,
    /// Whether what is not sealed is accepted.
    pub(super) accepts_unsealed: bool,
}

/// The part of a record that is sealed. A part is opened as what it was sealed as.
#[derive(Clone, Copy)]
enum SealedPart {
    Payload = 1,
    Note = 2,
}

impl Sealer {
    /// Seals the note of a claim. `None` means that there is nothing to seal.
    pub(super) fn claim(&self, key: &RecordKey, claim: &Claim) -> Result<Option<Claim>, StoreError> {
        if !self.seals || claim.note.is_empty() {
            return Ok(None);
        }
        Ok(Some(Claim { note: self.seal(SealedPart::Note, key, &claim.note)?, ..claim.clone() }))
    }

    /// Seals the payload of a settlement. `None` means that there is nothing to seal.
    pub(super) fn settlement(
        &self,
        key: &RecordKey,
        settlement: &Settlement,
    ) -> Result<Option<Settlement>, StoreError> {
        let Some(payload) = self.payload(key, settlement.payload.as_ref())? else { return Ok(None) };
        Ok(Some(Settlement::new(settlement.claimant, Some(payload), settlement.retention)))
    }

    /// Seals the payload of a failed attempt. `None` means that there is nothing to seal.
    pub(super) fn failed(&self, key: &RecordKey, failed: &FailedAttempt) -> Result<Option<FailedAttempt>, StoreError> {
        let Some(payload) = self.payload(key, failed.payload.as_ref())? else { return Ok(None) };
        Ok(Some(FailedAttempt::new(failed.granted, Some(payload), failed.keep)))
    }

    /// Opens the answer that a claim has found. What cannot be opened stays sealed, which every layer refuses.
    pub(super) fn claimed(&self, key: &RecordKey, claimed: Claimed) -> Claimed {
        match claimed {
            Claimed::Settled(Some(payload), origin) => {
                Claimed::Settled(Some(self.open_reported(key, payload).0), origin)
            }
            other => other,
        }
    }

    /// Opens the record that has refused an end.
    pub(super) fn finished(&self, key: &RecordKey, finished: Finished) -> Finished {
        match finished {
            Finished::Refused(Some(mut record)) => {
                if let Some(payload) = record.payload.take() {
                    let (payload, opened) = self.open_reported(key, payload);
                    (record.payload, record.opened[0]) = (Some(payload), opened);
                }
                self.open_note(key, &mut record);
                Finished::Refused(Some(record))
            }
            other => other,
        }
    }

    /// Opens a record that an operator reads. The record says by itself what could not be opened.
    pub(super) fn record(&self, key: &RecordKey, mut record: Record) -> Record {
        if let Some(payload) = record.payload.take() {
            let (payload, opened, _) = self.open(SealedPart::Payload, key, payload);
            (record.payload, record.opened[0]) = (Some(payload), opened);
        }
        self.open_note(key, &mut record);
        record
    }

    fn open_note(&self, key: &RecordKey, record: &mut Record) {
        if !record.note.is_empty() {
            let (note, opened, _) = self.open(SealedPart::Note, key, std::mem::take(&mut record.note));
            (record.note, record.opened[1]) = (note, opened);
        }
    }

    fn payload(&self, key: &RecordKey, payload: Option<&Bytes>) -> Result<Option<Bytes>, StoreError> {
        payload.filter(|_| self.seals).map(|payload| self.seal(SealedPart::Payload, key, payload)).transpose()
    }

    fn seal(&self, part: SealedPart, key: &RecordKey, bytes: &[u8]) -> Result<Bytes, StoreError> {
        let sealed = self.keys.seal(&self.context(part, key), bytes);
        sealed.ok_or_else(|| StoreError::new(StoreErrorKind::TooLarge, "longer than what can be sealed"))
    }

    /// Opens an answer for a client, and reports it if that fails.
    fn open_reported(&self, key: &RecordKey, payload: Bytes) -> (Bytes, Option<SealingKeyId>) {
        let (bytes, opened, why) = self.open(SealedPart::Payload, key, payload);
        if let Some(why) = why {
            report(key, why);
        }
        (bytes, opened)
    }

    /// Returns the bytes, the number of the key that they were opened with, and why they were not.
    fn open(&self, part: SealedPart, key: &RecordKey, bytes: Bytes) -> (Bytes, Option<SealingKeyId>, Option<Unopened>) {
        match self.keys.open(&self.context(part, key), &bytes) {
            Ok((opened, id)) => (opened, Some(id), None),
            Err(Unopened::Unsealed) if self.accepts_unsealed => (bytes, None, None),
            Err(why @ Unopened::Unsealed) => (Bytes::from_static(REFUSED), None, Some(why)),
            Err(why) => (bytes, None, Some(why)),
        }
    }

    /// Returns what sealed bytes are bound to: the part, the name behind its length, and the key of the record.
    fn context(&self, part: SealedPart, key: &RecordKey) -> Vec<u8> {
        let length = (self.name.len() as u64).to_be_bytes();
        [&[part as u8][..], &length, self.name.as_bytes(), key.as_bytes()].concat()
    }
}

#[cfg(feature = "tracing")]
fn report(key: &RecordKey, why: Unopened) {
    let (route, key_id, reason) = (key.route(), why.id(), why.reason());
    tracing::error!(route, %key_id, reason, "a kept answer cannot be opened, so its duplicates are refused");
}

#[cfg(not(feature = "tracing"))]
fn report(_: &RecordKey, why: Unopened) {
    let _ = (why.id(), why.reason());
}
