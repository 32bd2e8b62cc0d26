//! Which failures of the store let a request through unprotected.
//!
//! By default no failure does: a store that is away refuses with 503. A layer that runs at most once cannot fail open,
//! and a record that cannot be read never does: the request might be a duplicate.

use crate::value::{StoreError, StoreErrorKind};

/// When a request is let through unprotected whose claim the store has not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailOpen {
    /// No failure does.
    Never,
    /// The store fails.
    Away,
    /// The store fails, or has no room.
    AwayOrFull,
}

impl FailOpen {
    /// Returns whether this error lets a request through.
    pub(crate) fn lets_through(self, error: &StoreError) -> bool {
        match error.kind() {
            StoreErrorKind::Full => self == Self::AwayOrFull,
            StoreErrorKind::Unavailable
            | StoreErrorKind::Timeout
            | StoreErrorKind::Misconfigured
            | StoreErrorKind::Other => self != Self::Never,
            // There may be a record, or it is the request itself that no store would take.
            StoreErrorKind::TooManyKeys
            | StoreErrorKind::TooLarge
            | StoreErrorKind::Corrupt
            | StoreErrorKind::Invalid => false,
        }
    }
}
