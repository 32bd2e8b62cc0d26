use std::time::Duration;

use redis::RedisError;
use tokio::time::{Instant, sleep_until};

use crate::value::{doubled, jitter};

/// The pause after a first failed try to connect; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(25);
/// The longest pause between two tries.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The results of the last tries to connect.
#[derive(Default)]
pub(in crate::store::redis) struct DialState {
    /// How many tries in a row have failed.
    failures: u32,
    /// When the next try may begin.
    not_before: Option<Instant>,
    /// Why the last try failed; callers that waited for it get the same error.
    error: Option<RedisError>,
}

impl DialState {
    /// Waits until the next try may begin.
    pub(super) async fn pause(&self) {
        if let Some(moment) = self.not_before {
            sleep_until(moment).await;
        }
    }

    /// Returns why the last try failed; `None` if it succeeded.
    pub(super) fn error(&self) -> Option<RedisError> {
        self.error.clone()
    }

    /// Records that a try has failed: the next one waits.
    pub(super) fn fail(&mut self, error: RedisError) {
        let pause = doubled(PAUSE, self.failures.min(5), LONGEST_PAUSE);
        self.failures += 1;
        self.not_before = Some(Instant::now() + jitter(pause));
        self.error = Some(error);
    }
}
