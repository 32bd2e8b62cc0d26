//! The slots of a shard by the hash of their key.
//!
//! A table with open addresses, sorted by hash: the place of an entry is its hash as a fraction of the table, or soon
//! after it. A search ends at the first hash that is greater. The table grows by a quarter and not to the double, so
//! that it has little room to spare, and an entry includes the hash, so that growing reads no record.

/// No entry. No slot has this number.
const EMPTY: u64 = u64::MAX;

/// Tables up to this many places are kept when they are empty.
const KEPT_PLACES: usize = 256;

/// The places that are added behind the last home, for entries that are displaced from there.
const MARGIN: usize = 16;

/// Hash and slot of each record.
#[derive(Default)]
pub(super) struct Index {
    /// The hash in the upper half, the slot in the lower one.
    places: Vec<u64>,
    /// Over how many places the hashes are spread.
    homes: usize,
    used: usize,
}

impl Index {
    /// Returns what `see` finds in one of the slots with this hash.
    #[inline]
    pub(super) fn find<T>(&self, hash: u32, mut see: impl FnMut(u32) -> Option<T>) -> Option<T> {
        for &entry in self.places.get(self.home(hash)..)? {
            if hash_of(entry) > hash || entry == EMPTY {
                return None;
            }
            if hash_of(entry) == hash
                && let Some(found) = see(slot_of(entry))
            {
                return Some(found);
            }
        }
        None
    }

    /// Adds a slot.
    pub(super) fn insert(&mut self, hash: u32, slot: u32) {
        // At most five sixths are used, so that searches stay short.
        if (self.used + 1) * 6 > self.homes * 5 {
            self.grow();
        }
        self.used += 1;
        let home = self.home(hash);
        let at =
            home + self.places[home..].iter().take_while(|&&entry| entry != EMPTY && hash_of(entry) <= hash).count();
        let end = at + self.places[at..].iter().take_while(|&&entry| entry != EMPTY).count();
        if end == self.places.len() {
            self.places.push(EMPTY);
        }
        self.places.copy_within(at..end, at + 1);
        self.places[at] = entry(hash, slot);
    }

    /// Removes a slot. The table is freed with its last entry, unless it is small.
    pub(super) fn remove(&mut self, hash: u32, slot: u32) {
        let home = self.home(hash);
        let Some(found) = self.places.get(home..).and_then(|entries| {
            entries.iter().take_while(|&&entry| entry != EMPTY).position(|&found| found == entry(hash, slot))
        }) else {
            return;
        };
        let at = home + found;
        // What stands behind it and not in its home moves up.
        let rest = self.places[at + 1..].iter().enumerate();
        let moved =
            rest.take_while(|&(index, &entry)| entry != EMPTY && self.home(hash_of(entry)) < at + 1 + index).count();
        self.places.copy_within(at + 1..=at + moved, at);
        self.places[at + moved] = EMPTY;
        self.used -= 1;
        if self.used == 0 && self.places.len() > KEPT_PLACES {
            *self = Self::default();
        }
    }

    #[cfg(test)]
    pub(super) fn places(&self) -> usize {
        self.places.len()
    }

    /// Returns the place at which a hash belongs.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.homes as u64) >> 32) as usize
    }

    /// Spreads the entries over more places. They are in order, so each goes behind the one before it.
    fn grow(&mut self) {
        let homes = (self.homes + self.homes / 4).max(16);
        let mut grown = Self { places: vec![EMPTY; homes + MARGIN], homes, used: self.used };
        let mut next = 0;
        for &entry in self.places.iter().filter(|&&entry| entry != EMPTY) {
            let at = grown.home(hash_of(entry)).max(next);
            if at == grown.places.len() {
                grown.places.push(EMPTY);
            }
            grown.places[at] = entry;
            next = at + 1;
        }
        *self = grown;
    }
}

fn entry(hash: u32, slot: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(slot)
}

fn hash_of(entry: u64) -> u32 {
    (entry >> 32) as u32
}

#[allow(clippy::cast_possible_truncation)] // the lower half
fn slot_of(entry: u64) -> u32 {
    entry as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::store::memory::tests::Random;

    /// Compares with a map, while slots with hashes below `hashes` come and go.
    fn walk(seed: u64, hash: impl Fn(u64) -> u32, most: usize) {
        let (mut random, mut index, mut map) = (Random(seed), Index::default(), HashMap::new());
        for slot in 0..20_000 {
            let hash = hash(random.below(u64::MAX));
            if map.len() < most && random.below(3) > 0 {
                index.insert(hash, slot);
                map.insert(slot, hash);
            } else if let Some((&slot, &hash)) = map.iter().next() {
                index.remove(hash, slot);
                map.remove(&slot);
            }
            assert_eq!(index.find(hash, |found| (found == slot).then_some(())).is_some(), map.contains_key(&slot));
        }
        for (&slot, &hash) in &map {
            assert_eq!(index.find(hash, |found| (found == slot).then_some(found)), Some(slot));
        }
        assert_eq!(index.used, map.len());
        assert!(index.places().saturating_sub(64) <= map.len().max(most) * 2);
        for (slot, hash) in map {
            index.remove(hash, slot);
        }
        assert_eq!((index.used, index.places() <= KEPT_PLACES), (0, true));
    }

    #[test]
    fn it_finds_what_was_inserted_and_not_removed() {
        walk(1, |random| (random >> 32) as u32, 5000);
        walk(2, |random| (random >> 32) as u32, 30);
    }

    #[test]
    fn equal_hashes_and_the_last_ones_are_found_too() {
        walk(3, |random| [0, 1, u32::MAX - 1, u32::MAX][(random % 4) as usize], 200);
    }
}
