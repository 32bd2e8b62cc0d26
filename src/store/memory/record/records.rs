//! The records of a shard, each in one block.
//!
//! A write that makes a record longer may move it to a block of another class; its slot stays the same. Whatever a write
//! replaces and whose destructor could be the application's (`Extra`, which holds payloads and notes) is returned to the
//! caller and dropped after the lock.

use std::collections::BTreeMap;

use bytes::Bytes;

use crate::{
    store::memory::storage::{Blocks, LARGEST, Slots},
    value::{Claim, Release, Settlement, State, Undone, millis, released},
};

use super::{
    Extra, RecordDraft, RecordView,
    head::{CALLER_IS_NEW, EXTRA, Head, PAYLOAD, WAITED_FOR},
    moment::later,
    text::{self, OptionalFields},
    weight::{RecordChange, Summary},
};

/// Payloads up to this size, in bytes, are copied if they do not fit into a block. A longer payload is kept in its own
/// buffer, which replays share, so that it is neither copied nor freed while a lock is held.
pub(super) const COPIED_BYTES: usize = 4096;

/// Records in blocks, by slot.
#[derive(Default)]
pub(in crate::store::memory) struct Records {
    pub(in crate::store::memory) slots: Slots,
    blocks: Blocks,
    /// The fields that few records have, by the slot of the record.
    extras: BTreeMap<u32, Box<Extra>>,
}

impl Records {
    /// Returns the record in a slot, if there is one.
    #[inline]
    pub(in crate::store::memory) fn get(&self, slot: u32) -> Option<RecordView<'_>> {
        let (head, text) = Head::read(self.blocks.get(self.slots.get(slot)?))?;
        let extra = if head.has(EXTRA) { self.extras.get(&slot).map(|extra| &**extra) } else { None };
        Some(RecordView { head, text, extra })
    }

    /// Returns when the record in a slot expires, if it is that of this key in this namespace.
    #[inline]
    pub(in crate::store::memory) fn expires_if(&self, slot: u32, namespace: u32, key: &[u8]) -> Option<u64> {
        let (head, text) = Head::read(self.blocks.get(self.slots.get(slot)?))?;
        if usize::from(head.key_bytes) != key.len() {
            return None;
        }
        let (found, behind) = text.split_at_checked(key.len())?;
        (found == key && text::namespace(head.flags, behind) == namespace).then_some(head.expires)
    }

    /// Adds a record, and returns its slot.
    #[inline]
    pub(in crate::store::memory) fn insert(&mut self, record: &mut RecordDraft<'_>) -> u32 {
        let fields = record.fields.write();
        let block = self.blocks.take(Head::LENGTH + record.key.len() + fields.as_bytes().len());
        let slot = self.slots.take(block);
        let bytes = self.blocks.get_mut(block);
        record.head.write(bytes);
        put(bytes, 0, &[record.key, fields.as_bytes()]);
        if let Some(extra) = record.extra.take() {
            self.extras.insert(slot, extra);
        }
        slot
    }

    /// Replaces a record by another one of the same key.
    pub(in crate::store::memory) fn replace(
        &mut self,
        slot: u32,
        record: &mut RecordDraft<'_>,
    ) -> Option<RecordChange> {
        let (before, waited_for) = self.before(slot)?;
        record.head.set(WAITED_FOR, waited_for);
        self.write(slot, &record.head, record.key.len(), record.fields.write().as_bytes());
        let after = record.head.summary(record.extra.as_ref().map_or(0, |extra| extra.bytes()));
        let left = match record.extra.take() {
            Some(extra) => self.extras.insert(slot, extra),
            None => self.extras.remove(&slot),
        };
        Some(RecordChange { before, after, waited_for, left })
    }

    /// Removes a record, if there is one, and returns what may have destructors of the application.
    pub(in crate::store::memory) fn remove(&mut self, slot: u32) -> Option<Box<Extra>> {
        let has_extra = self.get(slot).is_some_and(|record| record.head.has(EXTRA));
        if let Some(block) = self.slots.give_back(slot) {
            self.blocks.give_back(block);
        }
        if has_extra { self.extras.remove(&slot) } else { None }
    }

    /// Sets lease and expiry anew.
    pub(in crate::store::memory) fn renew(&mut self, slot: u32, claim: &Claim, now: u64) -> Option<RecordChange> {
        let (fields, lease) = (self.get(slot)?.optional_fields(), millis(claim.lease));
        let (mut head, extra) = self.head(slot)?;
        let before = head.summary(extra);
        head.mark = later(now, claim.lease);
        head.expires = later(now, claim.lifetime());
        if fields.lease == lease {
            self.write_head(slot, &head);
        } else {
            self.write_fields(slot, &mut head, &OptionalFields { lease, ..fields });
        }
        Some(change(before, &head, extra))
    }

    /// Sets whether the shard has waiters for a record.
    pub(in crate::store::memory) fn set_waited_for(&mut self, slot: u32, waited_for: bool) {
        if let Some((mut head, _)) = self.head(slot) {
            head.set(WAITED_FOR, waited_for);
            self.write_head(slot, &head);
        }
    }

    /// Ends the claim with an answer. A payload that fits is written into the block.
    #[inline]
    pub(in crate::store::memory) fn settle(
        &mut self,
        slot: u32,
        settlement: &Settlement,
        now: u64,
    ) -> Option<RecordChange> {
        let (mut head, mut extra) = self.head(slot)?;
        let before = head.summary(extra);
        head.set_state(State::Settled);
        head.claimant = settlement.claimant;
        head.mark = now;
        head.expires = later(now, settlement.retention);
        let payload = settlement.payload.as_ref();
        head.set(PAYLOAD, payload.is_some());
        let text_bytes = usize::from(head.key_bytes) + text::bytes(head.flags);
        let long = payload.filter(|payload| Head::LENGTH + text_bytes + payload.len() > LARGEST);
        let short = payload.filter(|_| long.is_none()).map_or(&[][..], |payload| payload);
        head.payload_bytes = u16::try_from(short.len()).unwrap_or_default();
        head.set(EXTRA, head.has(EXTRA) || long.is_some());
        self.write(slot, &head, text_bytes, short);
        if let Some(long) = long {
            extra += long.len();
            let copied = long.len() <= COPIED_BYTES;
            let long = if copied { Bytes::copy_from_slice(long) } else { long.clone() };
            self.extras.entry(slot).or_default().payload = Some(long);
        }
        Some(change(before, &head, extra))
    }

    /// Ends the claim without an answer. A token is issued again, with its first expiry. What is left of a claim that is
    /// taken back is `undone`.
    pub(in crate::store::memory) fn release(
        &mut self,
        slot: u32,
        release: &Release,
        undone: Option<&Undone>,
        now: u64,
    ) -> Option<RecordChange> {
        let record = self.get(slot)?;
        let (mut fields, token) = (record.optional_fields(), record.token().map(|token| token.expires));
        let (mut head, extra) = self.head(slot)?;
        let before = head.summary(extra);
        head.claimant = release.claimant;
        let (state, expires) = released(token, later(now, release.keep));
        head.set_state(state);
        head.expires = expires;
        match undone {
            Some(&Undone { attempt, caller, secret, origin }) => {
                head.attempt = attempt;
                head.set(CALLER_IS_NEW, false);
                fields = OptionalFields { caller, secret, origin, ..fields };
                self.write_fields(slot, &mut head, &fields);
            }
            None => self.write_head(slot, &head),
        }
        Some(change(before, &head, extra))
    }

    #[cfg(test)]
    pub(in crate::store::memory) fn chunks(&self) -> usize {
        self.blocks.chunks()
    }

    /// Returns the head of a record, and how many bytes its `Extra` keeps.
    #[inline]
    fn head(&self, slot: u32) -> Option<(Head, usize)> {
        let record = self.get(slot)?;
        Some((record.head, record.extra.map_or(0, Extra::bytes)))
    }

    /// Returns what a record is before a change, and whether the shard has waiters for it.
    fn before(&self, slot: u32) -> Option<(Summary, bool)> {
        let (head, extra) = self.head(slot)?;
        Some((head.summary(extra), head.has(WAITED_FOR)))
    }

    /// Writes the head of a record.
    #[inline]
    fn write_head(&mut self, slot: u32, head: &Head) {
        if let Some(block) = self.slots.get(slot) {
            head.write(self.blocks.get_mut(block));
        }
    }

    /// Writes a record that has no payload with other optional fields.
    fn write_fields(&mut self, slot: u32, head: &mut Head, fields: &OptionalFields) {
        head.flags = head.flags & !text::OPTIONAL | fields.flags();
        self.write(slot, head, usize::from(head.key_bytes), fields.write().as_bytes());
    }

    /// Writes head and text of a record: `kept` bytes of its text stay, and `tail` follows. The block is replaced if it
    /// is of another class than the length asks for.
    fn write(&mut self, slot: u32, head: &Head, kept: usize, tail: &[u8]) {
        let Some(mut block) = self.slots.get(slot) else { return };
        let length = Head::LENGTH + kept + tail.len();
        if block.class() != Blocks::class_for(length) {
            block = self.blocks.moved(block, length, Head::LENGTH + kept);
            self.slots.set(slot, block);
        }
        let bytes = self.blocks.get_mut(block);
        head.write(bytes);
        put(bytes, kept, &[tail]);
    }
}

/// Returns a change that has replaced nothing.
#[inline]
fn change(before: Summary, head: &Head, extra: usize) -> RecordChange {
    RecordChange { before, after: head.summary(extra), waited_for: head.has(WAITED_FOR), left: None }
}

/// Writes the parts one after the other into a block, `from` bytes behind the head.
#[inline]
fn put(block: &mut [u8], from: usize, parts: &[&[u8]]) {
    let mut rest = block.get_mut(Head::LENGTH + from..).unwrap_or_default();
    for part in parts {
        let Some((place, behind)) = rest.split_at_mut_checked(part.len()) else { return };
        place.copy_from_slice(part);
        rest = behind;
    }
}
