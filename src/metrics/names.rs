//! A bounded number of names that become labels, each with what is remembered for it.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

/// The label of every further name.
pub(super) const OTHER: &str = "other";

/// What is remembered for each name, and for all further ones together.
pub(super) struct Names<T> {
    known: RwLock<HashMap<Box<str>, Arc<T>>>,
}

impl<T> Names<T> {
    pub(super) fn new() -> Self {
        Self { known: RwLock::default() }
    }

    /// Returns what is remembered for `name`. It is made first if it is new; past `max` names it is that of the others.
    pub(super) fn get(&self, name: &str, max: usize, make: impl FnOnce(&str) -> T) -> Arc<T> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(name) {
            return found.clone();
        }
        drop(known);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let name = if known.len() < max || known.contains_key(name) { name } else { OTHER };
        if let Some(found) = known.get(name) {
            return found.clone();
        }
        let new = Arc::new(make(name));
        known.insert(name.into(), new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_names_are_one() {
        let names = Names::new();
        let label = |name: &str| names.get(name, 2, str::to_owned).to_string();
        assert_eq!(["a", "b", "c", "d", "a"].map(label), ["a", "b", OTHER, OTHER, "a"]);
    }
}
