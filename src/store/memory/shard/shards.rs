//! The parts of a store and the frame of a call.
//!
//! A call that needs room runs its verb once; if that reports what is missing, room is made (expired records first,
//! then released ones, the oldest of all shards first) and the verb runs again from the start. So a verb must not have
//! changed anything before it reports that room is missing.
//!
//! Expired records are removed by the calls that follow, each within a budget. Every eighth call also looks at another
//! shard, so that a shard without calls does not keep its memory.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::{BuildHasher, Hasher},
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

use crate::{
    store::memory::{
        Clock,
        entry::FOREVER,
        room::{Full, Room},
    },
    value::RecordKey,
};

use super::{Shard, turn::Turn};

/// The number of shards, a power of two.
const SHARDS: usize = 64;

/// How many entries a call visits at most to remove expired records.
const BUDGET: usize = 64;

/// One call in so many also removes expired records in another shard, which may have no calls of its own.
const NUDGE: usize = 8;

/// The state that all handles of a store share.
pub(in crate::store::memory) struct Memory {
    /// The parts. The higher half of a key's hash selects one.
    shards: Box<[Aligned]>,
    /// The counts of all records, and their bounds.
    pub(in crate::store::memory) room: Room,
    /// Hashes keys with a random seed, so that a client cannot choose keys of one shard or one place.
    hasher: RandomState,
    /// The clock by which leases and retention go.
    clock: Box<dyn Clock>,
    namespaces: Mutex<HashMap<(u32, Box<str>), u32>>,
}

/// Keeps the locks of two shards out of one cache line.
#[repr(align(128))]
struct Aligned(Mutex<Shard>);

/// A key in its namespace, with its shard and hash.
#[derive(Clone, Copy)]
pub(in crate::store::memory) struct Name<'a> {
    pub(in crate::store::memory) namespace: u32,
    pub(in crate::store::memory) key: &'a RecordKey,
    /// The part of the hash that the index of the shard uses.
    pub(in crate::store::memory) hash: u32,
    /// The number of the shard that has the key.
    pub(in crate::store::memory) shard: usize,
}

impl Memory {
    /// Creates empty shards.
    pub(in crate::store::memory) fn new(room: Room, clock: Box<dyn Clock>) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Aligned(Mutex::new(Shard::new()))).collect(),
            room,
            hasher: RandomState::new(),
            clock,
            namespaces: Mutex::default(),
        }
    }

    /// Returns the time of the store's clock, within what an entry can hold.
    pub(in crate::store::memory) fn now(&self) -> u64 {
        self.clock.now().min(FOREVER)
    }

    /// Returns a key with its namespace, hash and shard.
    pub(in crate::store::memory) fn name<'a>(&self, namespace: u32, key: &'a RecordKey) -> Name<'a> {
        let hash = self.hash(namespace, key.as_bytes());
        let low = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default();
        Name { namespace, key, hash: low(hash), shard: low(hash >> 32) as usize % SHARDS }
    }

    /// Returns the hash of a key, which determines both the shard and the place in the shard's index.
    fn hash(&self, namespace: u32, key: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write_u32(namespace);
        hasher.write(key);
        hasher.finish()
    }

    /// Returns the part of [`hash`](Self::hash) that an index keeps.
    pub(in crate::store::memory) fn index_hash(&self, namespace: u32, key: &[u8]) -> u32 {
        u32::try_from(self.hash(namespace, key) & u64::from(u32::MAX)).unwrap_or_default()
    }

    /// Returns the namespace `name` within another.
    pub(in crate::store::memory) fn namespace(&self, within: u32, name: &str) -> u32 {
        let mut namespaces = self.namespaces.lock().unwrap_or_else(PoisonError::into_inner);
        let next = u32::try_from(namespaces.len() + 1).unwrap_or(u32::MAX);
        *namespaces.entry((within, name.into())).or_insert(next)
    }

    /// Returns how many shards there are.
    pub(in crate::store::memory) fn shards(&self) -> usize {
        self.shards.len()
    }

    /// Locks a shard.
    ///
    /// No code of the application's runs while a shard is locked: values with destructors or wakers of the
    /// application's leave the lock first. So nothing can panic between two writes that belong together, and a poisoned
    /// lock is safe to use.
    pub(in crate::store::memory) fn lock(&self, shard: usize) -> MutexGuard<'_, Shard> {
        self.shards[shard].0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many records were running at the latest call.
    pub(in crate::store::memory) fn running(&mut self) -> usize {
        let shards = self.shards.iter_mut().map(|shard| shard.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        shards.map(|shard| shard.running()).sum()
    }

    /// Locks a shard for a call at `now`.
    pub(in crate::store::memory) fn enter(&self, shard: usize, now: u64) -> Turn<'_> {
        Turn::new(self, self.lock(shard), now)
    }

    /// Runs an operation on a shard, and removes a few expired entries.
    pub(in crate::store::memory) fn verb<T>(&self, shard: usize, now: u64, verb: impl FnOnce(&mut Turn<'_>) -> T) -> T {
        let mut turn = self.enter(shard, now);
        turn.expire(BUDGET, BUDGET);
        let answer = verb(&mut turn);
        let turns = turn.count();
        drop(turn);
        if turns.is_multiple_of(NUDGE) {
            self.expire_neighbour(shard + turns / NUDGE, now);
        }
        answer
    }

    /// Runs an operation that may need room for a record, or for what the record is to keep.
    pub(in crate::store::memory) fn roomy<T>(
        &self,
        shard: usize,
        mut verb: impl FnMut(&mut Turn<'_>) -> Result<T, Full>,
    ) -> Result<T, Full> {
        let now = self.now();
        loop {
            match self.verb(shard, now, &mut verb) {
                Err(missing) if self.make_room(missing, shard, now) => {}
                answer => return answer,
            }
        }
    }

    /// Removes a few expired records of another shard, unless somebody else has locked it.
    fn expire_neighbour(&self, shard: usize, now: u64) {
        let guard = match self.shards[shard % SHARDS].0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        Turn::new(self, guard, now).expire(BUDGET, BUDGET);
    }

    /// Makes room by removing expired and released records only. It may not be enough yet.
    ///
    /// Expired records usually come first in the search, unless records expire in a very different order from that of
    /// their insertion. Only in that case, and before `Full` is returned, all records that may have expired are
    /// visited.
    fn make_room(&self, missing: Full, first: usize, now: u64) -> bool {
        if !self.room.could_have(missing) {
            return false;
        }
        let shards = || (first..first + SHARDS).map(|shard| shard % SHARDS);
        // Released records are not tokens, and do not count to a share.
        let released_help = matches!(missing, Full::Records | Full::Bytes(_));
        shards().any(|shard| self.enter(shard, now).expire(1, BUDGET).0 > 0)
            || released_help && self.drop_oldest_released(now)
            || shards().any(|shard| self.purge_shard(shard, now, 1) > 0)
            || self.room.has(missing)
    }

    /// Removes the released record that would expire first of all shards; returns whether there was one.
    fn drop_oldest_released(&self, now: u64) -> bool {
        while self.room.has_released() {
            let oldest = (0..SHARDS).filter_map(|shard| Some((self.enter(shard, now).oldest_released()?, shard))).min();
            let Some((_, shard)) = oldest else { break };
            if self.enter(shard, now).drop_released() {
                return true;
            }
        }
        false
    }

    /// Removes up to `limit` expired records of a shard, and returns how many. The lock is released now and then.
    pub(in crate::store::memory) fn purge_shard(&self, shard: usize, now: u64, limit: usize) -> usize {
        let mut removed = 0;
        loop {
            let (some, all) = self.enter(shard, now).expire(limit - removed, BUDGET);
            removed += some;
            if all || removed >= limit {
                return removed;
            }
        }
    }
}
