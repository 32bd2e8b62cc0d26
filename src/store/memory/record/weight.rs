//! How a record counts in `Capacity`.
//!
//! A change compares the weight before with the one after it, so that the counts follow without a second look at the
//! record.

use crate::value::State;

/// How a record counts.
#[derive(Clone, Copy)]
pub(in crate::store::memory) struct Weight {
    /// The state, which selects the counts.
    pub(in crate::store::memory) state: State,
    pub(in crate::store::memory) bytes: usize,
}
