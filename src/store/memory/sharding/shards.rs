//! The parts of a store and the frame of a call.
//!
//! A call that needs room runs its verb once; if that reports what is missing, room is made (what shards have in advance,
//! then expired records, then released ones, the oldest of all shards first) and the verb runs again from the start. So a verb must not have
//! changed anything before it reports that room is missing.
//!
//! Expired records are removed by the calls that follow, each within a budget. Every eighth call also looks at another
//! shard, so that a shard without calls does not keep its memory.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

use crate::{
    store::memory::{Clock, capacity::Capacity, full::Full, record::FOREVER},
    value::RecordKey,
};

use super::{
    hashed_key::{HashedKey, KeyHasher, SHARDS},
    shard::Shard,
    shard_guard::ShardGuard,
};

/// How many entries a call visits at most to remove expired records.
const BUDGET: usize = 64;

/// One call in so many also removes expired records in another shard, which may have no calls of its own.
const NEIGHBOUR_EVERY: usize = 8;

/// The state that all handles of a store share.
pub(in crate::store::memory) struct Memory {
    /// The parts. The higher half of a key's hash selects one.
    shards: Box<[Aligned]>,
    /// The counts of all records, and their bounds.
    pub(in crate::store::memory) capacity: Capacity,
    /// Hashes keys with a random seed, so that a client cannot choose keys of one shard or one place.
    hasher: KeyHasher,
    /// The clock by which leases and retention go.
    clock: Box<dyn Clock>,
    namespaces: Mutex<HashMap<(u32, Box<str>), u32>>,
}

/// Keeps the locks of two shards out of one cache line.
#[repr(align(128))]
struct Aligned(Mutex<Shard>);

impl Memory {
    /// Creates empty shards.
    pub(in crate::store::memory) fn new(capacity: Capacity, clock: Box<dyn Clock>) -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Aligned(Mutex::new(Shard::new()))).collect(),
            capacity,
            hasher: KeyHasher::default(),
            clock,
            namespaces: Mutex::default(),
        }
    }

    /// Returns the time of the store's clock, within what an entry can hold.
    pub(in crate::store::memory) fn now(&self) -> u64 {
        self.clock.now().min(FOREVER)
    }

    /// Returns a key with its namespace, hash and shard.
    pub(in crate::store::memory) fn hashed<'a>(&self, namespace: u32, key: &'a RecordKey) -> HashedKey<'a> {
        self.hasher.key(namespace, key)
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
    pub(in crate::store::memory) fn guard(&self, shard: usize, now: u64) -> ShardGuard<'_> {
        ShardGuard::new(&self.capacity, &self.hasher, self.lock(shard), now)
    }

    /// Runs an operation on a shard, and removes a few expired entries.
    pub(in crate::store::memory) fn run<T>(
        &self,
        shard: usize,
        now: u64,
        operation: impl FnOnce(&mut ShardGuard<'_>) -> T,
    ) -> T {
        let mut guard = self.guard(shard, now);
        guard.expire(BUDGET, BUDGET);
        let answer = operation(&mut guard);
        let calls = guard.next_call();
        drop(guard);
        if calls.is_multiple_of(NEIGHBOUR_EVERY) {
            self.expire_neighbour(shard + calls / NEIGHBOUR_EVERY, now);
        }
        answer
    }

    /// Runs an operation that may need room for a record, or for what the record is to keep.
    pub(in crate::store::memory) fn run_with_capacity<T>(
        &self,
        shard: usize,
        mut operation: impl FnMut(&mut ShardGuard<'_>) -> Result<T, Full>,
    ) -> Result<T, Full> {
        let now = self.now();
        loop {
            match self.run(shard, now, &mut operation) {
                Err(missing) if self.make_room(missing, shard, now) => {}
                answer => return answer,
            }
        }
    }

    /// Returns how many records there are, and how many bytes they keep.
    pub(in crate::store::memory) fn used(&self) -> (usize, usize) {
        let shards: Vec<_> = (0..SHARDS).map(|shard| self.lock(shard)).collect();
        self.capacity.used(shards.iter().map(|shard| &shard.room))
    }

    /// Removes a few expired records of another shard, unless somebody else has locked it.
    fn expire_neighbour(&self, shard: usize, now: u64) {
        let guard = match self.shards[shard % SHARDS].0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        ShardGuard::new(&self.capacity, &self.hasher, guard, now).expire(BUDGET, BUDGET);
    }

    /// Makes room by removing expired and released records only. It may not be enough yet.
    ///
    /// Expired records usually come first in the search, unless records expire in a very different order from that of
    /// their insertion. Only in that case, and before `Full` is returned, all records that may have expired are
    /// visited.
    fn make_room(&self, missing: Full, first: usize, now: u64) -> bool {
        if !self.capacity.can_ever_have(missing) {
            return false;
        }
        let shards = || (first..first + SHARDS).map(|shard| shard % SHARDS);
        if shards().filter(|&shard| self.guard(shard, now).collect_room(missing)).count() > 0 {
            return true;
        }
        // Released records are not tokens, and do not count to a share.
        let released_help = matches!(missing, Full::Records | Full::Bytes(_));
        shards().any(|shard| self.guard(shard, now).expire(1, BUDGET).0 > 0)
            || released_help && self.drop_oldest_released(now)
            || shards().any(|shard| self.purge_shard(shard, now, 1) > 0)
            || self.capacity.has_room_for(missing)
    }

    /// Removes the released record that would expire first of all shards; returns whether there was one.
    fn drop_oldest_released(&self, now: u64) -> bool {
        loop {
            let oldest = (0..SHARDS).filter_map(|shard| Some((self.guard(shard, now).oldest_released()?, shard))).min();
            let Some((_, shard)) = oldest else { return false };
            if self.guard(shard, now).drop_released() {
                return true;
            }
        }
    }

    /// Removes up to `limit` expired records of a shard, and returns how many. The lock is released now and then.
    pub(in crate::store::memory) fn purge_shard(&self, shard: usize, now: u64, limit: usize) -> usize {
        let mut removed = 0;
        loop {
            let (some, all) = self.guard(shard, now).expire(limit - removed, BUDGET);
            removed += some;
            if all || removed >= limit {
                return removed;
            }
        }
    }
}
