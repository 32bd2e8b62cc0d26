use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tower_service::Service;

use super::{Consumed, ConsumerFuture, settings::Settings};
use crate::{
    engine::{Completion, Execution, ExecutionOutcome, NoOutcome, Operation, RunContext, Task, Work},
    value::{Claim, Event, Payload, RecordKey, doubled, is_failure},
};

/// The longest delay after a failure, unless `retry_after` is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The retention of a record that is to be forgotten: the shortest time that a store supports.
const AT_ONCE: Duration = Duration::from_millis(1);

/// A service that handles each message once. Created by [`ConsumerLayer`](crate::ConsumerLayer).
///
/// The outcome of a message is a [`Consumed`], also if the inner service returns an error. This service itself fails
/// only if the inner service cannot become ready.
pub struct Consumer<S, M> {
    inner: S,
    settings: Arc<Settings<M>>,
}

impl<S, M> Consumer<S, M> {
    pub(super) fn new(inner: S, settings: Arc<Settings<M>>) -> Self {
        Self { inner, settings }
    }

    /// Returns a reference to the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns a mutable reference to the inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S: Clone, M> Consumer<S, M> {
    /// Returns the service whose readiness was polled, which is the one to call.
    fn ready(&mut self) -> S {
        let clone = self.inner.clone();
        mem::replace(&mut self.inner, clone)
    }
}

impl<S, M> Service<M> for Consumer<S, M>
where
    S: Service<M> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send + 'static,
    S::Error: Send + 'static,
    M: Send + 'static,
{
    type Response = Consumed<S::Response, S::Error>;
    type Error = S::Error;
    type Future = ConsumerFuture<S::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    /// # Panics
    ///
    /// Panics if a closure of the layer panics. Nothing is claimed then.
    fn call(&mut self, message: M) -> Self::Future {
        if self.settings.disabled {
            let settings = self.settings.clone();
            let mut inner = self.ready();
            return ConsumerFuture::pass(async move { Ok(settings.unprotected(inner.call(message).await)) });
        }
        let engine = self.settings.engine.clone();
        let (key, claim) = match self.settings.claim(&message) {
            Ok(claimed) => claimed,
            Err(refusal) => {
                engine.report(&Event::Refused { key: None, refusal: &refusal });
                return ConsumerFuture::ready(Consumed::Rejected { refusal });
            }
        };
        let inner = self.ready();
        let work = Arc::new(Work::new());
        let handled = self.settings.clone().handle(work.clone(), inner, message, key, claim);
        ConsumerFuture::task(Task::new(engine, work, async move { Ok(handled.await) }))
    }
}

impl<M> Settings<M> {
    async fn handle<S>(
        self: Arc<Self>,
        work: Arc<Work>,
        mut inner: S,
        mut message: M,
        key: RecordKey,
        claim: Claim,
    ) -> Consumed<S::Response, S::Error>
    where
        S: Service<M>,
        S::Error: 'static,
    {
        let remembered = |attempt| self.remembered(attempt);
        let execution = Execution { key: &key, claim: &claim, policy: &self.policy, counts: Some(&remembered) };
        let (settings, working, named) = (&self, &work, &key);
        let job = move |started: RunContext| async move {
            let granted = started.granted;
            if settings.attempts.is_some_and(|most| granted.attempt > most) {
                let attempts = granted.attempt - 1;
                return (Consumed::Exhausted { error: None, attempts }, Completion::Release(AT_ONCE));
            }
            if let Some(operation) = &settings.operation {
                operation(
                    &mut message,
                    Operation::new(working.clone(), named.clone(), started, settings.policy.retention),
                );
            }
            let outcome = inner.call(message).await;
            settings.ended(working, outcome, granted.attempt)
        };
        let outcome = self.engine.execute(&work, execution, job).await;
        match outcome {
            ExecutionOutcome::Ran(consumed) => consumed,
            ExecutionOutcome::Settled(payload) => {
                self.engine.report(&Event::Replayed { key: &key });
                if is_failure(payload.as_ref()) {
                    Consumed::FailedPermanently { error: None }
                } else {
                    Consumed::AlreadyDone
                }
            }
            ExecutionOutcome::NoOutcome(why) => {
                self.engine.report(&Event::Refused { key: Some(&key), refusal: &why.refusal() });
                self.without_outcome(&why)
            }
        }
    }

    /// Returns the outcome of a message that was run, and what happens to its record.
    fn ended<T, E>(&self, work: &Work, outcome: Result<T, E>, attempt: u32) -> (Consumed<T, E>, Completion)
    where
        E: 'static,
    {
        let is_final = outcome.as_ref().map_or_else(|error| self.permanent.is(error), |_| true);
        let kept = self.policy.keeps_outcome(work.wishes(), is_final);
        match outcome {
            Ok(response) => {
                let completion = if kept {
                    Completion::Settle(Payload::done().into_bytes())
                } else {
                    Completion::Release(self.policy.retention)
                };
                (Consumed::Executed(response), completion)
            }
            Err(error) if kept => (Consumed::FailedPermanently { error: Some(error) }, Completion::Fail),
            Err(error) if self.is_last(attempt) => {
                let exhausted = Consumed::Exhausted { error: Some(error), attempts: attempt };
                (exhausted, Completion::Release(self.remembered(attempt)))
            }
            Err(error) => {
                let retry_after = self.pause(attempt);
                (Consumed::Failed { error, attempt, retry_after }, Completion::Release(self.remembered(attempt)))
            }
        }
    }

    /// Returns the outcome of a message without a record.
    fn unprotected<T, E: 'static>(&self, outcome: Result<T, E>) -> Consumed<T, E> {
        match outcome {
            Ok(response) => Consumed::Executed(response),
            Err(error) if self.permanent.is(&error) => Consumed::FailedPermanently { error: Some(error) },
            Err(error) => Consumed::Failed { error, attempt: 1, retry_after: self.pause(1) },
        }
    }

    fn is_last(&self, attempt: u32) -> bool {
        self.attempts.is_some_and(|most| attempt >= most)
    }

    /// Returns how long a failed attempt is remembered. After the last attempt the count starts again.
    fn remembered(&self, attempt: u32) -> Duration {
        if self.is_last(attempt) { AT_ONCE } else { self.policy.retention }
    }

    fn pause(&self, attempt: u32) -> Duration {
        let first = self.retry_after;
        doubled(first, attempt.saturating_sub(1).min(16), LONGEST_PAUSE.max(first))
    }

    /// Returns the delay before a message is delivered again while another delivery has this much left of its lease.
    fn delay_beside(&self, left: Duration) -> Duration {
        self.retry_after.min(left).max(Duration::from_millis(1))
    }

    /// Returns the `Consumed` of a message that has no outcome. Each reason is listed: a reason that is forgotten would
    /// lose messages.
    fn without_outcome<T, E>(&self, why: &NoOutcome) -> Consumed<T, E> {
        match *why {
            NoOutcome::Running(left) => Consumed::InProgress { retry_after: self.delay_beside(left) },
            NoOutcome::Mismatch(mismatch) => Consumed::Mismatch { mismatch },
            NoOutcome::OutcomeUnknown => Consumed::OutcomeUnknown,
            NoOutcome::NotIssued => Consumed::Rejected { refusal: why.refusal() },
            NoOutcome::RolledBack { attempt } if self.is_last(attempt) => {
                Consumed::Exhausted { error: None, attempts: attempt }
            }
            NoOutcome::RolledBack { attempt } => Consumed::RolledBack { attempt, retry_after: self.pause(attempt) },
            NoOutcome::CommitUnknown => Consumed::CommitUnknown { retry_after: self.retry_after },
            NoOutcome::Incompatible | NoOutcome::NotNow(_) => Consumed::Unavailable { retry_after: self.retry_after },
        }
    }
}

impl<S: Clone, M> Clone for Consumer<S, M> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), settings: self.settings.clone() }
    }
}

impl<S: fmt::Debug, M> fmt::Debug for Consumer<S, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer").field("inner", &self.inner).field("settings", &self.settings).finish()
    }
}
