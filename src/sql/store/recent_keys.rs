//! A hint which keys have a record, so that their claims begin with a read.
//!
//! It is a table of hashes in atomics: a new key replaces the one in its place. A wrong hint costs one more statement
//! and nothing else, so nothing has to be exact, and nothing is locked.

use std::{
    hash::{BuildHasher, RandomState},
    iter::repeat_with,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// 64 KiB.
const PLACES: usize = 8192;

/// Records that this process has seen recently, by hashes of their ids. A claim of such a key begins with a read, which
/// takes half as long as a statement that inserts the record if there is none.
///
/// It is only a hint: a record that was seen may be gone, and an existing record may not have been seen.
pub(in crate::sql) struct RecentKeys {
    /// A hash in each place; zero if it is empty.
    places: Box<[AtomicU64]>,
    hasher: RandomState,
}

impl RecentKeys {
    /// Creates the table without any key.
    pub(in crate::sql) fn new() -> Self {
        Self { places: repeat_with(AtomicU64::default).take(PLACES).collect(), hasher: RandomState::new() }
    }

    /// Returns whether the record was seen, and not replaced in its place since.
    pub(in crate::sql) fn has(&self, id: &[u8]) -> bool {
        let (place, hash) = self.place(id);
        place.load(Relaxed) == hash
    }

    /// Notes that a record exists. Another one in the same place is forgotten.
    pub(in crate::sql) fn add(&self, id: &[u8]) {
        let (place, hash) = self.place(id);
        place.store(hash, Relaxed);
    }

    /// Notes that a record does not exist.
    pub(in crate::sql) fn remove(&self, id: &[u8]) {
        let (place, hash) = self.place(id);
        let _ = place.compare_exchange(hash, 0, Relaxed, Relaxed);
    }

    /// Returns the place of an id, and its hash.
    fn place(&self, id: &[u8]) -> (&AtomicU64, u64) {
        let hash = self.hasher.hash_one(id).max(1);
        let at = hash % PLACES as u64;
        (&self.places[usize::try_from(at).unwrap_or_default()], hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_met_is_known_until_it_is_gone() {
        let recent_keys = RecentKeys::new();
        assert!(!recent_keys.has(b"a") && !recent_keys.has(b""));
        recent_keys.add(b"a");
        recent_keys.remove(b"b");
        assert!(recent_keys.has(b"a") && !recent_keys.has(b"b"));
        recent_keys.remove(b"a");
        assert!(!recent_keys.has(b"a"));
    }
}
