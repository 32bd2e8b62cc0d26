//! Times in six bytes, which reach to the year 10889.

use std::time::Duration;

use crate::value::millis;

/// The last moment that an entry can hold: the year 10889.
pub(in crate::store::memory) const FOREVER: u64 = (1 << 48) - 1;

/// Returns the moment that is `duration` after `now`.
pub(in crate::store::memory) fn later(now: u64, duration: Duration) -> u64 {
    now.saturating_add(millis(duration)).min(FOREVER)
}

/// Milliseconds since the Unix epoch, in 48 bits.
#[derive(Clone, Copy)]
pub(super) struct Moment([u8; 6]);

impl Moment {
    /// Creates the moment; a later one than it can hold is the last one.
    pub(super) fn new(ms: u64) -> Self {
        let mut bytes = [0; 6];
        bytes.copy_from_slice(&ms.min(FOREVER).to_le_bytes()[..6]);
        Self(bytes)
    }

    /// Returns the milliseconds since the Unix epoch.
    pub(super) fn ms(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.0);
        u64::from_le_bytes(bytes)
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
}
