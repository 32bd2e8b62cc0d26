use std::time::Duration;

/// Converts to whole milliseconds; a duration that is too long becomes the maximum.
#[inline]
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a random duration between a half and the whole of `time`, so that many waiters do not come back at once.
#[cfg(any(feature = "redis", feature = "_sql"))]
pub(crate) fn jitter(time: Duration) -> Duration {
    let [random, ..] = super::Claimant::random().to_bytes();
    time / 2 + time / 512 * u32::from(random)
}

/// Returns `first`, doubled so many `times`, up to `longest`.
pub(crate) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    let factor = 1_u32.checked_shl(times).filter(|factor| *factor > 0).unwrap_or(u32::MAX);
    first.saturating_mul(factor).min(longest)
}

/// The pauses between attempts, each twice as long as the one before, up to the longest.
#[derive(Debug)]
pub(crate) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    pub(crate) const fn new(first: Duration, longest: Duration) -> Self {
        Self { next: first, longest }
    }

    /// Returns the pause that [`pause`](Self::pause) will return next.
    pub(crate) fn coming(&self) -> Duration {
        self.next
    }

    /// Returns the pause before the next attempt.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_is_too_long_is_the_maximum() {
        assert_eq!(millis(Duration::MAX), u64::MAX);
        assert_eq!(millis(SECOND), 1000);
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let mut backoff = Backoff::new(SECOND, SECOND * 5);
        assert_eq!(backoff.coming(), SECOND);
        assert_eq!([(); 5].map(|()| backoff.pause().as_secs()), [1, 2, 4, 5, 5]);
    }

    #[test]
    fn a_count_of_failures_gives_the_pause() {
        let pause = |times| doubled(SECOND, times, SECOND * 300).as_secs();
        assert_eq!([0, 1, 2, 8, 9, 39, u32::MAX].map(pause), [1, 2, 4, 256, 300, 300, 300]);
        assert_eq!(doubled(Duration::MAX, 5, Duration::MAX), Duration::MAX);
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn jitter_is_between_a_half_and_the_whole() {
        for time in [SECOND, Duration::MAX] {
            for _ in 0..1000 {
                let random = jitter(time);
                assert!(time / 2 <= random && random <= time, "{random:?}");
            }
        }
    }
}
