use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::value::RecordKey;

/// The keys whose records are being copied, so that a crowd of duplicates copies once.
#[derive(Default)]
pub(super) struct Filling(Mutex<HashSet<RecordKey>>);

impl Filling {
    pub(super) fn enter<'a>(&'a self, key: &'a RecordKey) -> Option<Turn<'a>> {
        self.keys().insert(key.clone()).then_some(Turn { filling: self, key })
    }

    fn keys(&self) -> MutexGuard<'_, HashSet<RecordKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key's place, given up when it is dropped.
pub(super) struct Turn<'a> {
    filling: &'a Filling,
    key: &'a RecordKey,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.filling.keys().remove(self.key);
    }
}
