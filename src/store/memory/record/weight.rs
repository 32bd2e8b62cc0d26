//! How a record counts in `Capacity`, and what a change of it means for others.
//!
//! A change returns what the record was before and what it is now, so that counts, order of expiry and waiters follow
//! without another look at the record.

use crate::value::{Claimant, State};

use super::Extra;

/// How a record counts.
#[derive(Clone, Copy)]
pub(in crate::store::memory) struct Weight {
    /// The state, which selects the counts.
    pub(in crate::store::memory) state: State,
    pub(in crate::store::memory) bytes: usize,
}

/// What others need to know of a record.
#[derive(Clone, Copy)]
pub(in crate::store::memory) struct Summary {
    pub(in crate::store::memory) weight: Weight,
    pub(in crate::store::memory) claimant: Claimant,
    pub(in crate::store::memory) expires: u64,
}

/// A change of a record.
pub(in crate::store::memory) struct RecordChange {
    pub(in crate::store::memory) before: Summary,
    pub(in crate::store::memory) after: Summary,
    /// Whether the shard has waiters for the record.
    pub(in crate::store::memory) waited_for: bool,
    /// What was replaced and may have destructors of the application, to be dropped while no lock is held.
    pub(in crate::store::memory) left: Option<Box<Extra>>,
}

impl RecordChange {
    /// Returns whether waiters have to look at the record.
    pub(in crate::store::memory) fn wakes(&self) -> bool {
        let seen = |summary: &Summary| (summary.weight.state, summary.claimant);
        self.waited_for && seen(&self.before) != seen(&self.after)
    }
}
