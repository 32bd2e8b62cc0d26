//! Blocks of bytes in size classes.
//!
//! A class has chunks of some kilobytes, each for a number of blocks of one size. Growing allocates one chunk and moves
//! nothing, so a call never waits for a copy of all records. The lowest free block is used first, so that the last
//! chunks become empty and are freed.
//!
//! | blocks of | in steps of | in one chunk |
//! | --- | ---: | ---: |
//! | 80 to 128 bytes | 16 | 64 |
//! | 144 to 512 bytes | 16 | 32 |
//! | 544 to 1,024 bytes | 32 | 16 |

/// The size of the largest block, in bytes.
pub(in crate::store::memory) const LARGEST: usize = 1024;

/// The size of the smallest block, in bytes.
const SMALLEST: usize = 80;

const CLASSES: usize = 44;

/// The bits of a block's number below its class. Both together stay below 2^31; `Slots` uses the highest bit.
const NUMBER_BITS: u32 = 25;

/// A block: its class, its chunk and its place there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store::memory) struct Block(u32);

/// All blocks of a shard.
pub(in crate::store::memory) struct Blocks {
    /// A class is created by its first block.
    classes: [Option<Box<Class>>; CLASSES],
}

/// The blocks of one size.
struct Class {
    /// The size of a block, in bytes.
    size: usize,
    /// The number of blocks in a chunk, as a power of two.
    shift: u32,
    chunks: Vec<Chunk>,
    /// The chunks with a free block, one bit each.
    open: Vec<u64>,
    /// No word of `open` before this index has a bit set.
    first_open: usize,
    /// How many chunks have memory and no block in use.
    spare: usize,
}

/// A number of blocks that are allocated and freed together.
struct Chunk {
    /// Filled in order, so that no block is written before it is needed. Empty if no memory is allocated.
    bytes: Vec<u8>,
    /// The free blocks, one bit each.
    free: u64,
}

impl Default for Blocks {
    fn default() -> Self {
        Self { classes: [const { None }; CLASSES] }
    }
}

impl Blocks {
    /// Returns the class of blocks that have room for `length` bytes, at most [`LARGEST`].
    pub(in crate::store::memory) fn class_for(length: usize) -> usize {
        match length {
            ..=512 => length.saturating_sub(SMALLEST).div_ceil(16),
            _ => 27 + (length.min(LARGEST) - 512).div_ceil(32),
        }
    }

    /// Takes a block with room for `length` bytes, at most [`LARGEST`]. Its bytes are what the last use has left.
    pub(in crate::store::memory) fn take(&mut self, length: usize) -> Block {
        let class = Self::class_for(length);
        let number = self.classes[class].get_or_insert_with(|| Box::new(Class::new(class))).take();
        Block::new(class, number)
    }

    /// Gives a block back. The last empty chunks of a class are freed, except for one.
    pub(in crate::store::memory) fn give_back(&mut self, block: Block) {
        if let Some(class) = &mut self.classes[block.class()] {
            class.give_back(block.number());
        }
    }

    /// Moves `kept` bytes of a block to one of another class, with room for `length` bytes.
    pub(in crate::store::memory) fn moved(&mut self, from: Block, length: usize, kept: usize) -> Block {
        let to = self.take(length);
        if let Ok([Some(source), Some(target)]) = self.classes.get_disjoint_mut([from.class(), to.class()])
            && let (Some(source), Some(target)) =
                (source.get(from.number()).get(..kept), target.get_mut(to.number()).get_mut(..kept))
        {
            target.copy_from_slice(source);
        }
        self.give_back(from);
        to
    }

    /// Returns the bytes of a block.
    #[inline]
    pub(in crate::store::memory) fn get(&self, block: Block) -> &[u8] {
        self.classes[block.class()].as_ref().map_or(&[], |class| class.get(block.number()))
    }

    /// Returns the bytes of a block, to be written.
    #[inline]
    pub(in crate::store::memory) fn get_mut(&mut self, block: Block) -> &mut [u8] {
        match &mut self.classes[block.class()] {
            Some(class) => class.get_mut(block.number()),
            None => &mut [],
        }
    }

    #[cfg(test)]
    pub(in crate::store::memory) fn chunks(&self) -> usize {
        let chunks = self.classes.iter().flatten().flat_map(|class| &class.chunks);
        chunks.filter(|chunk| !chunk.bytes.is_empty()).count()
    }
}

impl Block {
    #[allow(clippy::cast_possible_truncation)] // there are few classes
    fn new(class: usize, number: u32) -> Self {
        Self((class as u32) << NUMBER_BITS | number)
    }

    /// Returns the block of a number that [`to_u32`](Self::to_u32) has returned.
    #[inline]
    pub(super) fn from_u32(number: u32) -> Self {
        Self(number)
    }

    /// Returns its number, which is below 2^31.
    #[inline]
    pub(super) fn to_u32(self) -> u32 {
        self.0
    }

    /// Returns the number of its class.
    #[inline]
    pub(in crate::store::memory) fn class(self) -> usize {
        (self.0 >> NUMBER_BITS) as usize % CLASSES
    }

    fn number(self) -> u32 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }
}

impl Class {
    fn new(class: usize) -> Self {
        let (size, shift) = match class {
            0..4 => (SMALLEST + class * 16, 6),
            4..28 => (SMALLEST + class * 16, 5),
            _ => (512 + (class - 27) * 32, 4),
        };
        Self { size, shift, chunks: Vec::new(), open: Vec::new(), first_open: 0, spare: 0 }
    }

    /// Takes the lowest free block, and returns its number.
    #[allow(clippy::cast_possible_truncation)] // `MAX_CAPACITY` keeps the numbers of chunks small
    fn take(&mut self) -> u32 {
        let at = self.open_chunk();
        let (all, bytes) = (self.all(), self.size << self.shift);
        let chunk = &mut self.chunks[at];
        if chunk.bytes.is_empty() {
            chunk.bytes.reserve_exact(bytes);
        } else if chunk.free == all {
            self.spare -= 1;
        }
        let place = chunk.free.trailing_zeros();
        let end = (place as usize + 1) * self.size;
        if chunk.bytes.len() < end {
            chunk.bytes.resize(end, 0);
        }
        chunk.free &= chunk.free - 1;
        if chunk.free == 0 {
            self.open[at / 64] &= !(1 << (at % 64));
        }
        (at as u32) << self.shift | place
    }

    fn give_back(&mut self, number: u32) {
        let (at, place) = self.place(number);
        let all = self.all();
        let chunk = &mut self.chunks[at];
        chunk.free |= 1 << place;
        self.open[at / 64] |= 1 << (at % 64);
        self.first_open = self.first_open.min(at / 64);
        if chunk.free == all {
            // One empty chunk is kept, so that adding and removing a record does not allocate each time.
            if self.spare == 0 {
                self.spare = 1;
            } else {
                chunk.bytes = Vec::new();
                self.truncate();
            }
        }
    }

    #[inline]
    fn get(&self, number: u32) -> &[u8] {
        let (at, place) = self.place(number);
        self.chunks.get(at).and_then(|chunk| chunk.bytes.get(place * self.size..(place + 1) * self.size)).unwrap_or(&[])
    }

    #[inline]
    fn get_mut(&mut self, number: u32) -> &mut [u8] {
        let (at, place) = self.place(number);
        let range = place * self.size..(place + 1) * self.size;
        self.chunks.get_mut(at).and_then(|chunk| chunk.bytes.get_mut(range)).unwrap_or(&mut [])
    }

    /// Returns the chunk of a block, and the place in it.
    #[inline]
    fn place(&self, number: u32) -> (usize, usize) {
        ((number >> self.shift) as usize, (number & ((1 << self.shift) - 1)) as usize)
    }

    /// Returns a bit for each block of a chunk.
    fn all(&self) -> u64 {
        u64::MAX >> (64 - (1 << self.shift))
    }

    /// Returns the first chunk with a free block, adding one if all are full.
    fn open_chunk(&mut self) -> usize {
        while let Some(&word) = self.open.get(self.first_open) {
            if word != 0 {
                return self.first_open * 64 + word.trailing_zeros() as usize;
            }
            self.first_open += 1;
        }
        let at = self.chunks.len();
        self.chunks.push(Chunk { bytes: Vec::new(), free: self.all() });
        if at.is_multiple_of(64) {
            self.open.push(0);
        }
        self.open[at / 64] |= 1 << (at % 64);
        self.first_open = at / 64;
        at
    }

    /// Removes chunks without memory from the end.
    fn truncate(&mut self) {
        while self.chunks.pop_if(|chunk| chunk.bytes.is_empty()).is_some() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_the_room_that_was_asked_for_and_little_more() {
        let mut blocks = Blocks::default();
        for length in 1..=LARGEST {
            let block = blocks.take(length);
            let size = blocks.get(block).len();
            assert!(size >= length && (length < SMALLEST || size <= length + 31), "{length}: {size}");
            assert_eq!(block.class(), Blocks::class_for(length));
            assert_eq!(Block::from_u32(block.to_u32()), block);
        }
    }

    #[test]
    fn blocks_do_not_overlap_and_keep_their_bytes() {
        let mut blocks = Blocks::default();
        let taken: Vec<_> = (0..3000_usize).map(|n| (blocks.take(80 + n % 945), n.to_le_bytes()[0])).collect();
        for &(block, byte) in &taken {
            blocks.get_mut(block).fill(byte);
        }
        for &(block, byte) in &taken {
            assert!(blocks.get(block).iter().all(|&found| found == byte));
        }
    }

    #[test]
    fn the_lowest_block_is_taken_and_chunks_are_given_back() {
        let mut blocks = Blocks::default();
        let taken: Vec<_> = (0..10_000).map(|_| blocks.take(100)).collect();
        for number in [9_000, 77, 4_096, 78] {
            blocks.give_back(taken[number]);
        }
        assert_eq!(
            [77, 78, 4_096, 9_000].map(|_| blocks.take(100)),
            [77, 78, 4_096, 9_000].map(|number| taken[number])
        );
        for &block in &taken[100..] {
            blocks.give_back(block);
        }
        assert_eq!(blocks.chunks(), 3);
        for &block in &taken[..100] {
            blocks.give_back(block);
        }
        assert_eq!(blocks.chunks(), 1);
        assert_eq!(blocks.take(100), taken[0]);
    }
}
