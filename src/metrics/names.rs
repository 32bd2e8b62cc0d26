//! A bounded number of names that become labels, each with what is remembered for it.

use std::sync::{PoisonError, RwLock};

/// The label of every further name.
pub(super) const OTHER: &str = "other";

/// What is remembered for each name, and for all further ones together.
///
/// They are in the order of their names: there are few, and a comparison costs less than a hash.
pub(super) struct Names<T> {
    known: RwLock<Vec<(Box<str>, T)>>,
}

impl<T> Names<T> {
    pub(super) fn new() -> Self {
        Self { known: RwLock::default() }
    }

    /// Calls `use_it` with what is remembered for `name`. It is made first if it is new; past `max` names it is that of the
    /// others. `use_it` must not look for a name.
    #[inline]
    pub(super) fn with<R>(
        &self,
        name: &str,
        max: usize,
        make: impl FnOnce(&str) -> T,
        use_it: impl FnOnce(&T) -> R,
    ) -> R {
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if let Ok(at) = find(&known, name) {
                return use_it(&known[at].1);
            }
        }
        self.with_new(name, max, make, use_it)
    }

    #[cold]
    fn with_new<R>(&self, name: &str, max: usize, make: impl FnOnce(&str) -> T, use_it: impl FnOnce(&T) -> R) -> R {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let name = if known.len() < max || find(&known, name).is_ok() { name } else { OTHER };
        let at = find(&known, name).unwrap_or_else(|at| {
            known.insert(at, (name.into(), make(name)));
            at
        });
        use_it(&known[at].1)
    }
}

fn find<T>(known: &[(Box<str>, T)], name: &str) -> Result<usize, usize> {
    known.binary_search_by(|(known, _)| (**known).cmp(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_names_are_one() {
        let names = Names::new();
        let label = |name: &str| names.with(name, 2, str::to_owned, String::clone);
        assert_eq!(["b", "a", "c", "d", "b", "a"].map(label), ["b", "a", OTHER, OTHER, "b", "a"]);
    }
}
