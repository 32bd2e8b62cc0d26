//! Keys with their hash, which selects the shard and the place in its index.
//!
//! It is computed once for a call; its two halves select the shard and the place in the index.
//!
//! The hash is foldhash, seeded for each process and each store, and not `SipHash`, which costs several times as much. A
//! client chooses keys, but sees neither seed nor hash, and the index compares whole keys: keys that collide would only
//! be found more slowly. To find such keys without the seed, a client would have to measure differences of nanoseconds
//! through HTTP.

use std::hash::{BuildHasher, Hasher};

use hashbrown::DefaultHashBuilder;

use crate::value::RecordKey;

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
#[derive(Default)]
pub(in crate::store::memory) struct KeyHasher(DefaultHashBuilder);

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
        let mut hasher = self.0.build_hasher();
        hasher.write_u32(namespace);
        hasher.write(key);
        hasher.finish()
    }
}

fn low(bits: u64) -> u32 {
    u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default()
}
