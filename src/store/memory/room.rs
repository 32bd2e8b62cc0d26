use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the records of all shards. Both counts change only while the shard of the record in question is locked.
#[repr(align(128))]
pub(super) struct Room {
    used: AtomicUsize,
    released: AtomicUsize,
    capacity: usize,
}

impl Room {
    pub(super) fn new(capacity: usize) -> Self {
        Self { used: AtomicUsize::new(0), released: AtomicUsize::new(0), capacity }
    }

    /// Takes room for one record, if there is any.
    pub(super) fn take(&self) -> bool {
        let more = |used| (used < self.capacity).then_some(used + 1);
        self.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    pub(super) fn give_back(&self) {
        self.used.fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn is_free(&self) -> bool {
        self.used.load(Ordering::Acquire) < self.capacity
    }

    pub(super) fn has_released(&self) -> bool {
        self.released.load(Ordering::Acquire) > 0
    }

    pub(super) fn add_released(&self) {
        self.released.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn remove_released(&self) {
        self.released.fetch_sub(1, Ordering::AcqRel);
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }
}
