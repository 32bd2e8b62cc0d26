use std::{cell::Cell, fmt};

use crate::value::{SecretNumber, key::hex};

/// A random 128-bit identity, made anew for every claim.
///
/// Only the claimant that a record was claimed with can renew, settle or release it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claimant([u8; 16]);

impl Claimant {
    /// The claimant of a token that nobody has claimed. No claim has it.
    pub const NONE: Self = Self([0; 16]);

    /// Creates a new identity, which no other process or thread creates.
    ///
    /// Each thread counts from 128 random bits of the operating system, and mixes each half of the number, so that every
    /// part of an identity varies. An identity is unique; it is not a secret, and can be guessed from others of its
    /// thread.
    ///
    /// # Panics
    ///
    /// Panics if the operating system has no source of randomness.
    #[must_use]
    pub fn random() -> Self {
        thread_local!(static NEXT: Cell<Option<[u64; 2]>> = const { Cell::new(None) });
        let [low, high] = NEXT.get().unwrap_or_else(random_start);
        NEXT.set(Some([low.wrapping_add(STEP), high.wrapping_add(STEP)]));
        let claimant = Self((u128::from(mixed(low)) << 64 | u128::from(mixed(high))).to_be_bytes());
        if claimant == Self::NONE { Self::random() } else { claimant }
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

/// The distance of two numbers of a thread: odd, so that all numbers come before one comes again (Weyl sequence).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[cold]
fn random_start() -> [u64; 2] {
    let mut bytes = [[0; 8]; 2];
    if let Err(error) = getrandom::fill(bytes.as_flattened_mut()) {
        panic!("no source of randomness: {error}");
    }
    bytes.map(u64::from_le_bytes)
}

/// Mixes the bits of a number. Different numbers stay different (the finalizer of `SplitMix64`).
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
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
    fn claimants_differ_in_each_half_within_a_thread_and_between_threads() {
        let threads = (0..4).map(|_| std::thread::spawn(|| (0..1000).map(|_| Claimant::random()).collect::<Vec<_>>()));
        let threads: Vec<_> = threads.collect();
        let drawn: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        for half in [0..8, 8..16] {
            let halves: HashSet<_> = drawn.iter().map(|claimant| claimant.0[half.clone()].to_vec()).collect();
            assert_eq!(halves.len(), 4000);
        }
        let firsts: HashSet<_> = drawn.iter().map(|claimant| claimant.0[0]).collect();
        assert_eq!(firsts.len(), 256);
    }

    #[test]
    fn a_caller_is_not_shown() {
        assert_eq!(format!("{:?}", Caller::from_parts(1, [7; 16])), "Caller(..)");
    }
}
