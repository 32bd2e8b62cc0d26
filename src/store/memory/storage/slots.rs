//! Numbers of 32 bits that stay the same for the life of a record, while its block may change.
//!
//! Index, queues, waiters and cursors refer to a slot. A slot that becomes free is used again, so anyone who keeps its
//! number beyond the life of the record keeps its ticket too, which is another one after each
//! [`new_ticket`](Slots::new_ticket).

use super::Block;

/// No slot.
const NIL: u32 = u32::MAX >> 1;

/// Set in the word of a free slot, whose other bits are the next free slot.
const FREE: u32 = 1 << 31;

/// The slots of a shard.
pub(in crate::store::memory) struct Slots {
    /// The block of each slot, or the next free slot.
    words: Vec<u32>,
    /// The ticket of each slot.
    tickets: Vec<u8>,
    /// The first free slot.
    free: u32,
    /// How many slots are in use.
    used: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Self { words: Vec::new(), tickets: Vec::new(), free: NIL, used: 0 }
    }
}

impl Slots {
    /// Takes a slot for a block.
    pub(in crate::store::memory) fn take(&mut self, block: Block) -> u32 {
        self.used += 1;
        let slot = self.free;
        if let Some(word) = self.words.get_mut(slot as usize) {
            self.free = *word & !FREE;
            *word = block.to_u32();
            return slot;
        }
        if self.words.len() == self.words.capacity() {
            // By a quarter, so that a million of them have little room to spare.
            let more = self.words.len() / 4 + 16;
            self.words.reserve_exact(more);
            self.tickets.reserve_exact(more);
        }
        self.words.push(block.to_u32());
        self.tickets.push(0);
        self.end() - 1
    }

    /// Gives a slot back, and returns its block.
    pub(in crate::store::memory) fn give_back(&mut self, slot: u32) -> Option<Block> {
        let block = self.get(slot)?;
        self.words[slot as usize] = FREE | self.free;
        self.free = slot;
        self.used -= 1;
        Some(block)
    }

    /// Returns the block of a slot, if the slot is in use.
    #[inline]
    pub(in crate::store::memory) fn get(&self, slot: u32) -> Option<Block> {
        self.words.get(slot as usize).filter(|&&word| word & FREE == 0).map(|&word| Block::from_u32(word))
    }

    /// Sets the block of a slot that is in use.
    pub(in crate::store::memory) fn set(&mut self, slot: u32, block: Block) {
        if let Some(word) = self.words.get_mut(slot as usize) {
            *word = block.to_u32();
        }
    }

    /// Returns the ticket of a slot.
    #[inline]
    pub(in crate::store::memory) fn ticket(&self, slot: u32) -> u8 {
        self.tickets.get(slot as usize).copied().unwrap_or_default()
    }

    /// Gives a slot another ticket. The same one comes back after 256 of them.
    pub(in crate::store::memory) fn new_ticket(&mut self, slot: u32) {
        if let Some(ticket) = self.tickets.get_mut(slot as usize) {
            *ticket = ticket.wrapping_add(1);
        }
    }

    /// Returns a slot such that no slot in use is at it or after it.
    pub(in crate::store::memory) fn end(&self) -> u32 {
        u32::try_from(self.words.len()).unwrap_or(NIL)
    }

    /// Returns how many slots are in use.
    pub(in crate::store::memory) fn used(&self) -> usize {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_keeps_its_number_and_is_used_again() {
        let mut slots = Slots::default();
        for number in 0..100 {
            assert_eq!(slots.take(Block::from_u32(number)), number);
        }
        slots.set(7, Block::from_u32(700));
        assert_eq!(slots.give_back(7), Some(Block::from_u32(700)));
        assert_eq!(slots.give_back(7), None);
        assert_eq!((slots.get(7), slots.get(100), slots.used()), (None, None, 99));
        assert_eq!(slots.take(Block::from_u32(1)), 7);
        assert_eq!(slots.take(Block::from_u32(2)), 100);
        assert_eq!((slots.end(), slots.get(7)), (101, Some(Block::from_u32(1))));
    }

    #[test]
    fn a_new_ticket_differs() {
        let mut slots = Slots::default();
        let slot = slots.take(Block::from_u32(0));
        let before = slots.ticket(slot);
        slots.new_ticket(slot);
        assert_ne!(slots.ticket(slot), before);
    }
}
