use std::{
    fmt, mem,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tower_service::Service;

use super::{Consumed, ConsumerFuture, settings::Settings};
use crate::{
    engine::{ClaimRequest, Completion, FnSettings, Operation, Outcome, RunState, Task, retention},
    value::{Event, NotKept, Payload, Protection, RecordKey, doubled},
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
        let protection = self.settings.protection();
        if protection == Protection::Off {
            return self.pass(message);
        }
        let engine = self.settings.engine.clone();
        let (key, claim) = match self.settings.claim(&message) {
            Ok(claimed) => claimed,
            Err(refusal) if protection == Protection::ObserveOnly => {
                engine.report(&Event::WouldRefuse { route: &self.settings.name, key: None, refusal: &refusal });
                return self.pass(message);
            }
            Err(refusal) => {
                engine.report(&Event::Refused { route: &self.settings.name, key: None, refusal: &refusal });
                let rejected = Consumed::Rejected { refusal };
                self.settings.report_dead_letter(None, &rejected);
                return ConsumerFuture::ready(rejected);
            }
        };
        let inner = self.ready();
        // The address of its engine identifies a layer.
        let layer = Arc::as_ptr(&engine).addr();
        if protection == Protection::ObserveOnly {
            // What is handled in any case does not wait before.
            let request = ClaimRequest::new(key, claim, Duration::ZERO, layer);
            return ConsumerFuture::pass(self.settings.clone().observe(request, inner, message));
        }
        let request = ClaimRequest::new(key, claim, self.settings.policy.wait, layer);
        let (settings, fn_settings) = (self.settings.clone(), self.settings.fn_settings());
        let handling = self.settings.clone();
        let work = move |state| handling.handle(state, inner, message);
        let map = move |key: &RecordKey, outcome: Outcome<_>| Ok(settings.consumed(key, outcome));
        ConsumerFuture::task(Task::execute(engine, request, fn_settings, work, map))
    }
}

impl<S, M> Consumer<S, M>
where
    S: Service<M> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    M: Send + 'static,
{
    /// Hands a message on without a claim.
    fn pass(&mut self, message: M) -> ConsumerFuture<S::Response, S::Error> {
        let settings = self.settings.clone();
        let mut inner = self.ready();
        ConsumerFuture::pass(async move { Ok(settings.unprotected(inner.call(message).await)) })
    }
}

impl<M> Settings<M> {
    pub(super) fn fn_settings(self: &Arc<Self>) -> FnSettings
    where
        M: 'static,
    {
        let counting = self.clone();
        FnSettings { policy: *self.policy, counts: Some(Box::new(move |attempt| counting.remembered(attempt))) }
    }

    /// Handles a message that was claimed.
    pub(super) async fn handle<S>(
        self: Arc<Self>,
        state: Arc<RunState>,
        mut inner: S,
        mut message: M,
    ) -> (Consumed<S::Response, S::Error>, Completion)
    where
        S: Service<M>,
        S::Error: 'static,
    {
        let attempt = state.granted.attempt;
        if self.attempts.is_some_and(|most| attempt > most) {
            return (Consumed::Exhausted { error: None, attempts: attempt - 1 }, Completion::Release(AT_ONCE));
        }
        if let Some(operation) = &self.operation {
            operation(&mut message, Operation::new(state.clone(), self.policy.retention));
        }
        let outcome = inner.call(message).await;
        self.ended(&state, outcome, attempt)
    }

    /// Returns the outcome of a message that was run, and what happens to its record.
    fn ended<T, E>(&self, state: &RunState, outcome: Result<T, E>, attempt: u32) -> (Consumed<T, E>, Completion)
    where
        E: 'static,
    {
        let is_final = outcome.as_ref().map_or_else(|error| self.permanent.is(error), |_| true);
        let kept = self.policy.keeps_outcome(state.directives(), is_final);
        let retention = retention(state, &self.policy);
        match outcome {
            Ok(response) => {
                let completion = if kept {
                    Completion::Settle(Payload::done().into_bytes().ok_or(NotKept::NotSerializable), retention)
                } else {
                    Completion::Release(self.policy.retention)
                };
                (Consumed::Executed(response), completion)
            }
            Err(error) if kept => (Consumed::FailedPermanently { error: Some(error) }, Completion::Fail(retention)),
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
    pub(super) fn unprotected<T, E: 'static>(&self, outcome: Result<T, E>) -> Consumed<T, E> {
        let consumed = match outcome {
            Ok(response) => Consumed::Executed(response),
            Err(error) if self.permanent.is(&error) => Consumed::FailedPermanently { error: Some(error) },
            Err(error) => Consumed::Failed { error, attempt: 1, retry_after: self.pause(1) },
        };
        self.report_dead_letter(None, &consumed);
        consumed
    }

    pub(super) fn is_last(&self, attempt: u32) -> bool {
        self.attempts.is_some_and(|most| attempt >= most)
    }

    /// Returns how long a failed attempt is remembered. After the last attempt the count starts again.
    fn remembered(&self, attempt: u32) -> Duration {
        if self.is_last(attempt) { AT_ONCE } else { self.policy.retention }
    }

    pub(super) fn pause(&self, attempt: u32) -> Duration {
        let first = self.retry_after;
        doubled(first, attempt.saturating_sub(1).min(16), LONGEST_PAUSE.max(first))
    }

    /// Returns the delay before a message is delivered again while another delivery has this much left of its lease.
    pub(super) fn delay_beside(&self, left: Duration) -> Duration {
        self.retry_after.min(left).max(Duration::from_millis(1))
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
