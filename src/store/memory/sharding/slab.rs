//! Slots for entries, in chunks of 64.
//!
//! Growing allocates one chunk and moves nothing, so a call never waits for a copy of all records. An empty chunk at
//! the end is freed; slots are reused from the lowest, so that this happens.

use std::ops::{Index, IndexMut};

use crate::store::memory::record::MemoryRecord;

/// The slots of a chunk: one for each bit of `free`.
const SLOTS: u32 = 64;

/// Entries in slots that never move. They are stored in chunks, so that growing copies none of them. The lowest free
/// slot is used first, so that the last chunks become empty and are freed.
#[derive(Default)]
pub(in crate::store::memory) struct Slab {
    /// The chunks in the order of their slots.
    chunks: Vec<Chunk>,
    /// The chunks with a free slot, one bit each.
    open: Vec<u64>,
    /// No word of `open` before this index has a bit set.
    first_open: usize,
    /// How many chunks have memory and no entry.
    spare: usize,
    /// How many entries there are.
    live: usize,
}

/// A block of slots that is allocated and freed as a whole.
struct Chunk {
    /// Filled in order, so that no slot is written before it is needed. Empty if no memory is allocated for them.
    slots: Vec<Option<MemoryRecord>>,
    /// The free slots, one bit each.
    free: u64,
}

impl Slab {
    /// Puts an entry into the lowest free slot, and returns the slot.
    pub(in crate::store::memory) fn insert(&mut self, entry: MemoryRecord) -> u32 {
        let at = self.open_chunk();
        let chunk = &mut self.chunks[at];
        if chunk.slots.is_empty() {
            chunk.slots.reserve_exact(SLOTS as usize);
            self.spare += 1;
        }
        let slot = chunk.free.trailing_zeros();
        if chunk.free == u64::MAX {
            self.spare -= 1;
        }
        chunk.free &= !(1 << slot);
        match chunk.slots.get_mut(slot as usize) {
            Some(place) => *place = Some(entry),
            None => chunk.slots.push(Some(entry)),
        }
        if chunk.free == 0 {
            self.open[at / 64] &= !(1 << (at % 64));
        }
        self.live += 1;
        u32::try_from(at).unwrap_or(u32::MAX).saturating_mul(SLOTS) + slot
    }

    /// Takes an entry out of its slot. The last empty chunks are freed, except for one.
    pub(in crate::store::memory) fn remove(&mut self, slot: u32) -> Option<MemoryRecord> {
        let at = (slot / SLOTS) as usize;
        let chunk = self.chunks.get_mut(at)?;
        let entry = chunk.slots.get_mut((slot % SLOTS) as usize)?.take()?;
        chunk.free |= 1 << (slot % SLOTS);
        self.open[at / 64] |= 1 << (at % 64);
        self.first_open = self.first_open.min(at / 64);
        self.live -= 1;
        if chunk.free == u64::MAX {
            self.spare += 1;
            // One empty chunk is kept, so that adding and removing a record does not allocate each time.
            if self.spare > 1 {
                chunk.slots = Vec::new();
                self.spare -= 1;
                self.truncate();
            }
        }
        Some(entry)
    }

    /// Returns the entry in a slot, if there is one.
    pub(in crate::store::memory) fn get(&self, slot: u32) -> Option<&MemoryRecord> {
        self.chunks.get((slot / SLOTS) as usize)?.slots.get((slot % SLOTS) as usize)?.as_ref()
    }

    /// Returns a slot such that no entry is at it or after it.
    pub(in crate::store::memory) fn end(&self) -> u32 {
        u32::try_from(self.chunks.len()).unwrap_or(u32::MAX).saturating_mul(SLOTS)
    }

    #[cfg(test)]
    pub(in crate::store::memory) fn len(&self) -> usize {
        self.live
    }

    #[cfg(test)]
    pub(in crate::store::memory) fn chunks(&self) -> usize {
        self.chunks.iter().filter(|chunk| !chunk.slots.is_empty()).count()
    }

    /// Returns the first chunk with a free slot, adding one if all are full.
    fn open_chunk(&mut self) -> usize {
        while let Some(&word) = self.open.get(self.first_open) {
            if word != 0 {
                return self.first_open * 64 + word.trailing_zeros() as usize;
            }
            self.first_open += 1;
        }
        let at = self.chunks.len();
        self.chunks.push(Chunk { slots: Vec::new(), free: u64::MAX });
        if at.is_multiple_of(64) {
            self.open.push(0);
        }
        self.open[at / 64] |= 1 << (at % 64);
        self.first_open = at / 64;
        at
    }

    /// Removes chunks without memory from the end.
    fn truncate(&mut self) {
        while self.chunks.pop_if(|chunk| chunk.slots.is_empty()).is_some() {
            let at = self.chunks.len();
            self.open[at / 64] &= !(1 << (at % 64));
        }
        self.open.truncate(self.chunks.len().div_ceil(64));
        self.first_open = self.first_open.min(self.open.len());
        if self.chunks.capacity() > 4 * self.chunks.len().max(16) {
            self.chunks.shrink_to(2 * self.chunks.len());
        }
    }
}

impl Index<u32> for Slab {
    type Output = MemoryRecord;

    fn index(&self, slot: u32) -> &MemoryRecord {
        match self.get(slot) {
            Some(entry) => entry,
            None => unreachable!("slot {slot} is free"),
        }
    }
}

impl IndexMut<u32> for Slab {
    fn index_mut(&mut self, slot: u32) -> &mut MemoryRecord {
        match &mut self.chunks[(slot / SLOTS) as usize].slots[(slot % SLOTS) as usize] {
            Some(entry) => entry,
            None => unreachable!("slot {slot} is free"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::RecordKey;

    fn entry(number: u32) -> MemoryRecord {
        MemoryRecord::new(number, &RecordKey::new("/", None, "k").unwrap(), 0)
    }

    #[test]
    fn the_lowest_slot_is_taken_and_chunks_are_given_back() {
        let mut slab = Slab::default();
        for number in 0..10_000 {
            assert_eq!(slab.insert(entry(number)), number);
        }
        for number in [9_000, 77, 4_096, 78] {
            assert_eq!(slab.remove(number).unwrap().namespace(), number);
            assert!(slab.remove(number).is_none() && slab.get(number).is_none());
        }
        assert_eq!([77, 78, 4_096, 9_000].map(|number| slab.insert(entry(number))), [77, 78, 4_096, 9_000]);
        for number in 0..10_000 {
            assert_eq!(slab[number].namespace(), number);
        }
        for number in 100..10_000 {
            slab.remove(number);
        }
        assert_eq!(slab.len(), 100);
        assert!(slab.end() <= 256 && slab.chunks.capacity() < 100, "{}", slab.end());
        for number in 0..100 {
            slab.remove(number);
        }
        assert_eq!(slab.chunks(), 1);
        assert!(slab.insert(entry(1)) < 256);
    }
}
