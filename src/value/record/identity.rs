use std::{cell::RefCell, fmt};

use crate::value::{SecretNumber, key::hex};

/// A random 128-bit identity, made anew for every claim.
///
/// Only the claimant that a record was claimed with can renew, settle or release it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claimant([u8; 16]);

impl Claimant {
    /// The claimant of a token that nobody has claimed. No claim has it.
    pub const NONE: Self = Self([0; 16]);

    /// Draws a new identity.
    ///
    /// The bytes come from the operating system, a few hundred at a time for each thread.
    ///
    /// # Panics
    ///
    /// Panics if the operating system has no source of randomness.
    #[must_use]
    pub fn random() -> Self {
        thread_local!(static POOL: RefCell<Pool> = const { RefCell::new(Pool::EMPTY) });
        Self(POOL.with_borrow_mut(Pool::draw))
    }

    /// Creates the identity that a store has kept.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the identity as bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for Claimant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claimant({})", hex(&self.0))
    }
}

/// Random bytes that were read and not given out yet. One system call serves sixteen claims.
struct Pool {
    bytes: [u8; Self::SIZE],
    used: usize,
}

impl Pool {
    const SIZE: usize = 256;
    const EMPTY: Self = Self { bytes: [0; Self::SIZE], used: Self::SIZE };

    fn draw(&mut self) -> [u8; 16] {
        if self.used + 16 > Self::SIZE {
            if let Err(error) = getrandom::fill(&mut self.bytes) {
                panic!("no source of randomness: {error}");
            }
            self.used = 0;
        }
        let mut drawn = [0; 16];
        drawn.copy_from_slice(&self.bytes[self.used..self.used + 16]);
        self.used += 16;
        drawn
    }
}

/// A digest of the request's credentials, which distinguishes callers if there is no scope.
///
/// It is kept beside the fingerprint and compared before it, so that one caller never receives the answer of another
/// one. A caller carries the scheme that made it; callers of different schemes are never equal.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    scheme: u8,
    digest: [u8; 16],
}

impl Caller {
    /// The caller of a request without credentials, and of every request if a scope is set.
    pub const NONE: Self = Self { scheme: 0, digest: [0; 16] };

    /// The length of a caller as bytes: the scheme and the digest.
    pub const LENGTH: usize = 17;

    /// Creates the caller of a scheme and a digest. Scheme 0 is [`NONE`](Self::NONE).
    #[must_use]
    pub const fn from_parts(scheme: u8, digest: [u8; 16]) -> Self {
        Self { scheme, digest }
    }

    /// Creates the caller that a store has kept as bytes.
    #[must_use]
    pub fn from_bytes([scheme, rest @ ..]: [u8; Self::LENGTH]) -> Self {
        Self { scheme, digest: rest }
    }

    /// Returns the scheme and the digest as bytes, for a store to keep.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [self.scheme; Self::LENGTH];
        bytes[1..].copy_from_slice(&self.digest);
        bytes
    }

    /// Returns the scheme that made it.
    #[must_use]
    pub const fn scheme(&self) -> u8 {
        self.scheme
    }

    /// Returns the digest.
    #[must_use]
    pub const fn digest(&self) -> &[u8; 16] {
        &self.digest
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::NONE { "Caller(none)" } else { "Caller(..)" })
    }
}

/// The origin of an operation: what the first claim of a record leaves in it for all later ones.
///
/// Child keys are derived from it, so that they are the same for each attempt, whatever a later attempt brings along
/// and whichever secret is used then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Origin {
    /// The caller of the first claim.
    pub caller: Caller,
    /// The number of the secret that this caller is made with.
    pub secret: SecretNumber,
}

impl Origin {
    /// The origin of a record that nobody has claimed.
    pub const NONE: Self = Self { caller: Caller::NONE, secret: SecretNumber::NONE };

    /// Creates the origin that a store has kept.
    #[must_use]
    pub const fn new(caller: Caller, secret: SecretNumber) -> Self {
        Self { caller, secret }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn claimants_differ() {
        let drawn: HashSet<_> = (0..1000).map(|_| Claimant::random()).collect();
        assert_eq!(drawn.len(), 1000);
    }

    #[test]
    fn a_caller_is_not_shown() {
        assert_eq!(format!("{:?}", Caller::from_parts(1, [7; 16])), "Caller(..)");
    }
}
