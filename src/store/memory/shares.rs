//! The bound on the records of one scope.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::record::Scoped;

/// The counts are in parts with a lock each, so that scopes rarely wait for one another.
const PARTS: usize = 16;

/// Counts the records of each scope, except released ones, which are removed anyway if room is short.
///
/// Scopes are identified by their hash: two scopes with the same hash (1 in 2^64) have one share together.
pub(super) struct Shares {
    /// How many records a scope may have.
    limit: usize,
    hasher: RandomState,
    counts: [Mutex<HashMap<u64, usize>>; PARTS],
}

impl Shares {
    /// Creates counts for shares of this size.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, hasher: RandomState::new(), counts: Default::default() }
    }

    /// Reserves a place for a record in the share of its scope, and returns whether there was one.
    pub(super) fn reserve(&self, record: &impl Scoped) -> bool {
        let Some(scope) = self.scope(record) else { return true };
        let mut counts = self.counts(scope);
        let count = counts.get(&scope).copied().unwrap_or_default();
        let has_room = count < self.limit;
        if has_room {
            counts.insert(scope, count + 1);
        }
        has_room
    }

    /// Gives back the place of a record that is gone or released.
    pub(super) fn release(&self, record: &impl Scoped) {
        let Some(scope) = self.scope(record) else { return };
        let mut counts = self.counts(scope);
        match counts.get_mut(&scope) {
            Some(count @ 2..) => *count -= 1,
            _ => drop(counts.remove(&scope)),
        }
    }

    /// Returns the hash of the scope that a record counts to, if it has one.
    fn scope(&self, record: &impl Scoped) -> Option<u64> {
        record.with_scope(|scope| self.hasher.hash_one((record.namespace(), scope)))
    }

    /// Locks the part that has a scope.
    fn counts(&self, scope: u64) -> MutexGuard<'_, HashMap<u64, usize>> {
        let part = usize::try_from(scope % PARTS as u64).unwrap_or_default();
        self.counts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }
}
