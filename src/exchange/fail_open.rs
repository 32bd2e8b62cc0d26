use crate::value::{StoreError, StoreErrorKind};

/// When a request is let through unprotected whose claim the store has not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailOpen {
    Never,
    /// The store fails.
    Away,
    /// The store fails, or has no room.
    AwayOrFull,
}

impl FailOpen {
    pub(super) fn lets_through(self, error: &StoreError) -> bool {
        match error.kind() {
            StoreErrorKind::Full => self == Self::AwayOrFull,
            StoreErrorKind::TooManyKeys | StoreErrorKind::TooLarge => false,
            _ => self != Self::Never,
        }
    }
}
