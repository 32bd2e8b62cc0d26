use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::value::RecordKey;

/// The keys whose records are being copied, so that many duplicates make one copy.
#[derive(Default)]
pub(super) struct Filling(Mutex<HashSet<RecordKey>>);

impl Filling {
    pub(super) fn enter<'a>(&'a self, key: &'a RecordKey) -> Option<Turn<'a>> {
        // Not `then_some`: it would create a turn even if none is granted, and drop it while the keys are locked.
        self.keys().insert(key.clone()).then(|| Turn { filling: self, key })
    }

    fn keys(&self) -> MutexGuard<'_, HashSet<RecordKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to copy a key's record; it is given up when dropped.
pub(super) struct Turn<'a> {
    filling: &'a Filling,
    key: &'a RecordKey,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.filling.keys().remove(self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_copies_a_key() {
        let filling = Filling::default();
        let (one, other) = (RecordKey::new("/", None, "1").unwrap(), RecordKey::new("/", None, "2").unwrap());
        let turn = filling.enter(&one);
        assert!(turn.is_some());
        assert!(filling.enter(&one).is_none());
        assert!(filling.enter(&one).is_none());
        assert!(filling.enter(&other).is_some());
        drop(turn);
        assert!(filling.enter(&one).is_some());
    }
}
