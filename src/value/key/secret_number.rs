use std::fmt;

use super::digest::hex;

/// The number of a secret, which identifies the secret that the values of a record were made with.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretNumber(u32);

impl SecretNumber {
    /// No secret: the values are plain digests.
    pub const NONE: Self = Self(0);

    /// Creates the number that a store has kept.
    #[must_use]
    pub const fn from_u32(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number, for a store to keep.
    #[must_use]
    pub const fn to_u32(self) -> u32 {
        self.0
    }
}

impl fmt::Debug for SecretNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretNumber({})", hex(&self.0.to_be_bytes()))
    }
}
