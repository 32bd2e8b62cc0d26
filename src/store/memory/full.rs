//! What a store has no room for, and the errors of that.

use crate::value::{StoreError, StoreErrorKind};

/// What is missing for a record, or for more bytes in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Room for one more record.
    Records,
    /// Room for so many more bytes.
    Bytes(usize),
    /// Room for one more token, of so many bytes.
    Tokens(usize),
    /// Room in what the scope of the record may hold.
    Share,
}

impl Full {
    /// Returns the error that a key was refused.
    #[cold]
    pub(super) fn of_a_key(self) -> StoreError {
        let (kind, message) = match self {
            Self::Records => (StoreErrorKind::Full, "the memory store has no room for another record; see `capacity`"),
            Self::Bytes(_) => {
                (StoreErrorKind::Full, "the memory store has no bytes left for a record; see `max_bytes`")
            }
            Self::Tokens(_) => (
                StoreErrorKind::Full,
                "unclaimed tokens hold half of the memory store, and more are not issued; see `capacity` and \
                 `share_per_scope`, or sign tokens instead of storing them",
            ),
            Self::Share => (
                StoreErrorKind::TooManyKeys,
                "a scope holds as many records of the memory store as it may; see `share_per_scope`",
            ),
        };
        StoreError::new(kind, message)
    }

    /// Returns the error that an answer cannot be kept.
    #[cold]
    pub(super) fn of_an_answer(self) -> StoreError {
        match self {
            Self::Bytes(bytes) => {
                let message = format!("the memory store has no room for an answer of {bytes} bytes; see `max_bytes`");
                StoreError::new(StoreErrorKind::TooLarge, message)
            }
            other => other.of_a_key(),
        }
    }
}
