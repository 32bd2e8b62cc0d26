//! The keys that are being copied.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::value::RecordKey;

/// The keys whose records are being copied, so that many duplicates make one copy.
#[derive(Default)]
pub(super) struct InFlightFills(Mutex<HashSet<RecordKey>>);

impl InFlightFills {
    pub(super) fn begin<'a>(&'a self, key: &'a RecordKey) -> Option<FillGuard<'a>> {
        // Not `then_some`: it would create a guard even if none is granted, and drop it while the keys are locked.
        self.keys().insert(key.clone()).then(|| FillGuard { fills: self, key })
    }

    fn keys(&self) -> MutexGuard<'_, HashSet<RecordKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to copy a key's record; it is given up when dropped.
pub(super) struct FillGuard<'a> {
    fills: &'a InFlightFills,
    key: &'a RecordKey,
}

impl Drop for FillGuard<'_> {
    fn drop(&mut self) {
        self.fills.keys().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_copies_a_key() {
        let fills = InFlightFills::default();
        let (one, other) = (RecordKey::new("/", None, "1").unwrap(), RecordKey::new("/", None, "2").unwrap());
        let guard = fills.begin(&one);
        assert!(guard.is_some());
        assert!(fills.begin(&one).is_none());
        assert!(fills.begin(&one).is_none());
        assert!(fills.begin(&other).is_some());
        drop(guard);
        assert!(fills.begin(&one).is_some());
    }
}
