//! The settings of a memory store.

use std::{fmt, sync::Arc};

use super::{Clock, MemoryStore, capacity::Capacity, clock::SystemClock, sharding::Memory};

/// The default of `capacity`.
const CAPACITY: usize = 1_000_000;
/// The default of `max_bytes`.
const MAX_BYTES: usize = 256 * 1024 * 1024;

/// A shard numbers its blocks by 25 bits. It has a 64th of the records, with a deviation that is a tiny part of that.
const MAX_CAPACITY: usize = 1 << 30;

/// Builds a [`MemoryStore`].
#[must_use = "a store is made by `build`"]
pub struct MemoryStoreBuilder {
    capacity: usize,
    max_bytes: usize,
    share: Option<usize>,
    clock: Option<Box<dyn Clock>>,
}

impl MemoryStoreBuilder {
    pub(super) fn new() -> Self {
        Self { capacity: CAPACITY, max_bytes: MAX_BYTES, share: None, clock: None }
    }

    /// Sets how many records the store holds at most, over all namespaces. Default: 1,000,000.
    ///
    /// See [Room](MemoryStore#room). The maximum is about a billion (2^30); larger values are reduced to that.
    pub fn capacity(self, records: usize) -> Self {
        Self { capacity: records.min(MAX_CAPACITY), ..self }
    }

    /// Sets how many bytes the records keep at most, over all namespaces: their keys, answers and notes. Default: 256
    /// MiB.
    ///
    /// A store whose bytes are used up refuses new keys, as one that is full of records does. An answer that does not
    /// fit is not kept: its record becomes a tombstone, so that the operation does not run again, and a duplicate is
    /// answered that the answer was not retained. See [Room](MemoryStore#room).
    pub fn max_bytes(self, bytes: usize) -> Self {
        Self { max_bytes: bytes, ..self }
    }

    /// Sets how many records one scope may hold at most: a tenant, a user, or whatever the layers' `scope` returns.
    /// Default: as many as there is room for.
    ///
    /// New keys of a scope that holds so many are refused with
    /// [`TooManyKeys`](crate::store::StoreErrorKind::TooManyKeys), and the client receives a 429 `too-many-keys`; other
    /// scopes are not affected. A stored token counts for its principal. Released records do not count, and records
    /// without a scope or a principal do not count either.
    pub fn share_per_scope(self, records: usize) -> Self {
        Self { share: Some(records), ..self }
    }

    /// Sets the clock. Default: the wall clock when the store is created, and Tokio's time from then on.
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Some(Box::new(clock)), ..self }
    }

    /// Builds the store.
    #[must_use]
    pub fn build(self) -> MemoryStore {
        let clock = self.clock.unwrap_or_else(|| Box::new(SystemClock::now()));
        let capacity = Capacity::new(self.capacity, self.max_bytes, self.share);
        MemoryStore { memory: Arc::new(Memory::new(capacity, clock)), namespace: 0 }
    }
}

impl fmt::Debug for MemoryStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStoreBuilder")
            .field("capacity", &self.capacity)
            .field("max_bytes", &self.max_bytes)
            .field("share_per_scope", &self.share)
            .finish_non_exhaustive()
    }
}
