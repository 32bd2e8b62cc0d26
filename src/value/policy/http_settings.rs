use std::time::Duration;

use http::StatusCode;

use super::{HOUR, OnDuplicate, Policy, Resolve, RunPolicy, RunSettings, Setting, WhileRunning, run::Mode};
use crate::value::Keep;

const MIB: usize = 1024 * 1024;

/// The plain values of a [`Policy`].
#[derive(Clone, Debug)]
pub(crate) struct HttpSettings {
    pub(crate) run: RunSettings,
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) while_running: WhileRunning,
    pub(crate) keep: Keep,
    pub(crate) retry_after: Duration,
    pub(crate) request_limit: usize,
    pub(crate) response_limit: usize,
    pub(crate) stream_after: Option<Duration>,
}

impl HttpSettings {
    /// Returns how long attempts are remembered after a failure, with its answer if there was one. A client's mistake
    /// (4xx) is corrected soon or never.
    pub(crate) fn released_for(&self, answer: Option<StatusCode>) -> Duration {
        match answer {
            Some(status) if status.is_client_error() => self.run.retention.min(HOUR),
            _ => self.run.retention,
        }
    }
}

impl Resolve for Policy {
    type Values = HttpSettings;

    fn merge(&mut self, later: Self) {
        let mode = later.run.mode.is_some();
        self.run.merge(later.run);
        self.on_duplicate.merge(later.on_duplicate, mode);
        self.while_running.merge(later.while_running, mode);
        self.keep.merge(later.keep, mode);
        self.retry_after.merge(later.retry_after, mode);
        self.request_limit.merge(later.request_limit, mode);
        self.response_limit.merge(later.response_limit, mode);
        self.stream_after.merge(later.stream_after, mode);
    }

    fn resolve(&self) -> HttpSettings {
        let while_running = self.while_running.or(WhileRunning::Refuse);
        let keep = self.keep.or(Keep::SUCCESS);
        let wait = match while_running {
            WhileRunning::Wait(wait) | WhileRunning::WaitThenRespond(wait, _) => wait,
            WhileRunning::Refuse | WhileRunning::Respond(_) => Duration::ZERO,
        };
        HttpSettings {
            run: RunSettings { wait, keep_errors: keep.is_of_failures(), ..self.run.resolve() },
            on_duplicate: self.on_duplicate.or(OnDuplicate::Replay),
            while_running,
            keep,
            retry_after: self.retry_after.or(Duration::from_secs(1)),
            request_limit: self.request_limit.or(2 * MIB),
            response_limit: self.response_limit.or(2 * MIB),
            stream_after: self.stream_after.get().copied(),
        }
    }
}

/// A policy of every edge means the same for requests: an error is a failed answer, and a window refuses.
impl From<RunPolicy> for Policy {
    fn from(run: RunPolicy) -> Self {
        let while_running = |wait: &Duration| match *wait {
            Duration::ZERO => WhileRunning::Refuse,
            wait => WhileRunning::Wait(wait),
        };
        let mut policy = Self {
            while_running: run.wait.map(while_running),
            keep: run.keep_errors.map(|errors| if *errors { Keep::EVERYTHING } else { Keep::SUCCESS }),
            ..Self::default()
        };
        match run.mode {
            Some(Mode::Window) => policy.on_duplicate = Setting::by_mode(OnDuplicate::Reject),
            Some(Mode::OneAtATime) if policy.keep.get().is_none() => policy.keep = Setting::by_mode(Keep::NOTHING),
            _ => {}
        }
        Self { run, ..policy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::policy::{DAY, UNRECONCILED};

    #[test]
    fn horizons() {
        let policy = Policy::replay().lease(Duration::from_secs(30)).retention(Duration::from_secs(2)).resolve();
        assert_eq!(policy.run.horizon(), Duration::from_secs(300));
        assert_eq!(policy.released_for(None), Duration::from_secs(2));
        let replay = Policy::replay().resolve();
        assert_eq!(replay.run.horizon(), DAY);
        assert_eq!(replay.released_for(Some(StatusCode::CONFLICT)), HOUR);
        assert_eq!(replay.released_for(Some(StatusCode::BAD_GATEWAY)), DAY);
        assert_eq!(Policy::at_most_once().resolve().run.horizon(), UNRECONCILED);
    }
}
