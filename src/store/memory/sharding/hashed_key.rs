//! Keys with their hash, which selects the shard and the place in its index.
//!
//! It is computed once for a call; its two halves select the shard and the place in the index.
//!
//! The hash is foldhash, and not `SipHash`, which costs several times as much. Its seeds are 128 random bits of the
//! operating system for each store. Foldhash does not claim to resist an attacker who measures how long look-ups take; a
//! client of this store sees neither seeds nor hashes, and would have to measure nanoseconds through HTTP. The index
//! compares whole keys, so keys that collide are never confused: what an attacker could reach is a slow shard.

use std::hash::Hasher;

use foldhash::{SharedSeed, fast::FoldHasher};

use crate::value::{RecordKey, random_bytes};

/// The number of shards, a power of two.
pub(super) const SHARDS: usize = 64;

/// A key in its namespace, with its shard and hash.
#[derive(Clone, Copy)]
pub(in crate::store::memory) struct HashedKey<'a> {
    pub(in crate::store::memory) namespace: u32,
    pub(in crate::store::memory) key: &'a RecordKey,
    /// The part of the hash that the index of the shard uses.
    pub(in crate::store::memory) hash: u32,
    /// The number of the shard that has the key.
    pub(in crate::store::memory) shard: usize,
}

/// Hashes keys. No other store has the same hashes, so nobody can choose keys that collide.
pub(in crate::store::memory) struct KeyHasher {
    seed: u64,
    shared: SharedSeed,
}

impl Default for KeyHasher {
    fn default() -> Self {
        let [seed, shared] = [random_bytes(), random_bytes()].map(u64::from_le_bytes);
        Self { seed, shared: SharedSeed::from_u64(shared) }
    }
}

impl KeyHasher {
    pub(in crate::store::memory) fn key<'a>(&self, namespace: u32, key: &'a RecordKey) -> HashedKey<'a> {
        let hash = self.hash(namespace, key.as_bytes());
        HashedKey { namespace, key, hash: low(hash), shard: low(hash >> 32) as usize % SHARDS }
    }

    /// Returns the part of [`hash`](Self::hash) that an index keeps.
    pub(in crate::store::memory) fn index_hash(&self, namespace: u32, key: &[u8]) -> u32 {
        low(self.hash(namespace, key))
    }

    /// Returns the hash of a key, which determines both the shard and the place in the shard's index.
    fn hash(&self, namespace: u32, key: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.seed, &self.shared);
        hasher.write_u32(namespace);
        hasher.write(key);
        hasher.finish()
    }
}

fn low(bits: u64) -> u32 {
    u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn key(text: &str) -> RecordKey {
        RecordKey::new("/orders", None, text).unwrap()
    }

    #[test]
    fn a_store_finds_its_keys_again_and_no_other_store_hashes_as_it_does() {
        let (one, other) = (KeyHasher::default(), KeyHasher::default());
        let hashes = |hasher: &KeyHasher| (0..64).map(|n| hasher.key(0, &key(&n.to_string())).hash).collect::<Vec<_>>();
        assert_eq!(hashes(&one), hashes(&one));
        assert_ne!(hashes(&one), hashes(&other));
        assert_ne!(one.key(0, &key("a")).hash, one.key(1, &key("a")).hash);
        assert_eq!(one.key(7, &key("a")).hash, one.index_hash(7, key("a").as_bytes()));
    }

    #[test]
    fn keys_that_are_alike_are_spread_over_all_shards() {
        let hasher = KeyHasher::default();
        let shards: HashSet<_> = (0..64 * 32).map(|n| hasher.key(0, &key(&format!("order-{n}"))).shard).collect();
        assert_eq!(shards.len(), SHARDS);
    }
}
