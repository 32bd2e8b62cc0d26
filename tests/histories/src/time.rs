//! The clock that all processes of a machine share: milliseconds since it was started. A faked clock does not move it.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    u64::try_from(time.tv_sec * 1_000 + time.tv_nsec / 1_000_000).unwrap_or_default()
}

pub(crate) const fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Sleeps for so many milliseconds.
pub(crate) async fn pause(count: u64) {
    tokio::time::sleep(millis(count)).await;
}
