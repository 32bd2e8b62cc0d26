use std::{fmt, sync::Arc};

use super::{Clock, MemoryStore, clock::Started, shards::Memory};

const CAPACITY: usize = 1_000_000;

/// Slots are numbers of 32 bits, and one of them means none.
const MAX_CAPACITY: usize = u32::MAX as usize - 64;

/// Builds a [`MemoryStore`].
#[must_use = "a store is made by `build`"]
pub struct MemoryStoreBuilder {
    capacity: usize,
    clock: Option<Box<dyn Clock>>,
}

impl MemoryStoreBuilder {
    pub(super) fn new() -> Self {
        Self { capacity: CAPACITY, clock: None }
    }

    /// How many records the store holds at most, over all namespaces. Default: 1,000,000.
    ///
    /// See [Room](MemoryStore#room) for what that means in bytes. More than four billion are not possible, and are
    /// taken for four billion.
    pub fn capacity(self, records: usize) -> Self {
        Self { capacity: records.min(MAX_CAPACITY), ..self }
    }

    /// Whose time it is. Default: the wall clock at the store's birth, and Tokio's time from then on.
    pub fn clock(self, clock: impl Clock) -> Self {
        Self { clock: Some(Box::new(clock)), ..self }
    }

    /// The store.
    #[must_use]
    pub fn build(self) -> MemoryStore {
        let clock = self.clock.unwrap_or_else(|| Box::new(Started::now()));
        MemoryStore { memory: Arc::new(Memory::new(self.capacity, clock)), namespace: 0 }
    }
}

impl fmt::Debug for MemoryStoreBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStoreBuilder").field("capacity", &self.capacity).finish_non_exhaustive()
    }
}
