use std::{cell::Cell, fmt};

use crate::value::{SecretNumber, key::hex, random_bytes};

/// A 128-bit identity, made anew for every claim.
///
/// Only the claimant that a record was claimed with can renew, settle or release it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Claimant([u8; 16]);

impl Claimant {
    /// The claimant of a token that nobody has claimed. No claim has it.
    pub const NONE: Self = Self([0; 16]);

    /// Creates a new identity. That two are equal is as improbable as with 128 random bits.
    ///
    /// Each thread counts from 128 random bits of the operating system, from new ones after 256 identities, and mixes
    /// each half of the number, so that every part of an identity varies. An identity is unique, but it is not a
    /// secret: it can be computed from others of its thread.
    ///
    /// A process that is copied while it runs (`fork` without `exec`, a snapshot of a virtual machine that is started
    /// twice) creates up to 256 identities a thread that its copy creates too. If both claim one key with the same one,
    /// the second claim counts as a repetition of the first, and both run.
    ///
    /// # Panics
    ///
    /// Panics if the operating system has no source of randomness.
    #[must_use]
    pub fn random() -> Self {
        thread_local!(static NEXT: Cell<Numbers> = const { Cell::new(Numbers::NONE) });
        let (claimant, next) = NEXT.get().draw();
        NEXT.set(next);
        claimant
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

/// The numbers that a thread makes its next identities from.
#[derive(Clone, Copy)]
struct Numbers {
    halves: [u64; 2],
    left: u16,
}

impl Numbers {
    const NONE: Self = Self { halves: [0; 2], left: 0 };

    /// How many identities begin with one look at the operating system's randomness: few, for the sake of a process
    /// that is copied.
    const AT_ONCE: u16 = 256;

    /// The distance of two numbers: odd, so that all numbers come before one comes again (Weyl sequence).
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    /// Returns an identity, and the numbers for the next one.
    fn draw(self) -> (Claimant, Self) {
        let Self { halves: [low, high], left } = if self.left == 0 { Self::random() } else { self };
        let claimant = Claimant((u128::from(mixed(low)) << 64 | u128::from(mixed(high))).to_be_bytes());
        let next = Self { halves: [low, high].map(|half| half.wrapping_add(Self::STEP)), left: left - 1 };
        if claimant == Claimant::NONE { next.draw() } else { (claimant, next) }
    }

    #[cold]
    fn random() -> Self {
        let start = u128::from_le_bytes(random_bytes());
        let halves = [start, start >> 64].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or_default());
        Self { halves, left: Self::AT_ONCE }
    }
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
    fn a_copy_of_the_numbers_draws_others_after_256() {
        let draw = |mut numbers: Numbers| {
            let mut drawn = Vec::new();
            for _ in 0..=256 {
                let (claimant, next) = numbers.draw();
                drawn.push(claimant);
                numbers = next;
            }
            drawn
        };
        let numbers = Numbers::random();
        let (one, other) = (draw(numbers), draw(numbers));
        assert_eq!(one[..256], other[..256]);
        assert_ne!(one[256], other[256]);
    }

    #[test]
    fn a_caller_is_not_shown() {
        assert_eq!(format!("{:?}", Caller::from_parts(1, [7; 16])), "Caller(..)");
    }
}
