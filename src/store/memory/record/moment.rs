//! Times in six bytes, which reach to the year 10889.

use std::{cmp::Ordering, time::Duration};

use crate::value::millis;

/// The last moment that a record can hold: the year 10889.
pub(in crate::store::memory) const FOREVER: u64 = (1 << 48) - 1;

/// Returns the moment that is `duration` after `now`.
pub(in crate::store::memory) fn later(now: u64, duration: Duration) -> u64 {
    now.saturating_add(millis(duration)).min(FOREVER)
}

/// Milliseconds since the Unix epoch, in 48 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::store::memory) struct Moment([u8; Self::LENGTH]);

impl Moment {
    pub(super) const LENGTH: usize = 6;

    /// Creates the moment; a later one than it can hold is the last one.
    #[inline]
    pub(in crate::store::memory) fn new(ms: u64) -> Self {
        let mut bytes = [0; Self::LENGTH];
        bytes.copy_from_slice(&ms.min(FOREVER).to_le_bytes()[..Self::LENGTH]);
        Self(bytes)
    }

    /// Returns the milliseconds since the Unix epoch.
    #[inline]
    pub(in crate::store::memory) fn ms(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..Self::LENGTH].copy_from_slice(&self.0);
        u64::from_le_bytes(bytes)
    }

    #[inline]
    pub(super) fn from_bytes(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    #[inline]
    pub(super) fn to_bytes(self) -> [u8; Self::LENGTH] {
        self.0
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ms().cmp(&other.ms())
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_saturate() {
        assert_eq!(Moment::new(u64::MAX).ms(), FOREVER);
        assert_eq!(Moment::new(0x1234_5678_9abc).ms(), 0x1234_5678_9abc);
        assert_eq!(later(5, Duration::MAX), FOREVER);
    }

    #[test]
    fn moments_are_ordered_by_time() {
        assert!(Moment::new(0x0100) > Moment::new(0xff) && Moment::new(1) < Moment::new(0x0100_0000_0000));
    }
}
