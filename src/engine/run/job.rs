//! What a run executes.
//!
//! Requests implement `Job` by hand (`http`), so that a run is one flat future. Messages, functions and reconciliation
//! use `FnJob`, which wraps an `async` block.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use pin_project_lite::pin_project;

use super::{Completion, Outcome, RunState};
use crate::{
    engine::Engine,
    value::{RecordKey, Retain, RunSettings},
};

/// The work of one operation, and what its caller receives.
pub(crate) trait Job {
    /// What the work produces, before the claim is ended.
    type Value: Send + 'static;
    /// What the caller receives.
    type Output;

    fn engine(&self) -> &Arc<Engine>;

    /// Does the work. A panic is caught, and resumed after the claim has ended.
    fn poll_work(self: Pin<&mut Self>, state: &Arc<RunState>, cx: &mut Context<'_>) -> Poll<(Self::Value, Completion)>;

    /// Drops the work, which has ended or panicked. It is gone before its claim is ended.
    fn drop_work(self: Pin<&mut Self>);

    /// Returns whether a panic is recorded even if the client has left: it then cannot be that the work lacks the
    /// client's task-locals.
    fn keeps_panics(&self) -> bool;

    /// Returns what is recorded of work that has panicked.
    fn completion_of_panic(self: Pin<&mut Self>, state: &RunState) -> Completion;

    /// Returns for how long an attempt is counted whose transaction was rolled back. `None`: it is not counted.
    fn remembers_rolled_back(&self, attempt: u32) -> Option<Duration>;

    /// Returns what the caller receives.
    fn respond(self: Pin<&mut Self>, state: &RunState, outcome: Outcome<Self::Value>) -> Self::Output;
}

/// The settings of a job that is a message, a function or a case of reconciliation.
pub(crate) struct FnSettings {
    pub(crate) policy: RunSettings,
    /// Returns for how long an attempt is counted whose transaction was rolled back. Without it such attempts are not
    /// counted.
    pub(crate) counts: Option<Box<dyn Fn(u32) -> Duration + Send + Sync>>,
}

pin_project! {
    /// A job that is an `async` block, whose outcome a closure maps.
    pub(crate) struct FnJob<F, M> {
        engine: Arc<Engine>,
        settings: FnSettings,
        #[pin]
        work: Option<F>,
        map: Option<M>,
    }
}

impl<F, M> FnJob<F, M> {
    pub(crate) fn new(engine: Arc<Engine>, settings: FnSettings, work: F, map: M) -> Self {
        Self { engine, settings, work: Some(work), map: Some(map) }
    }
}

impl<F, V, M, T> Job for FnJob<F, M>
where
    F: Future<Output = (V, Completion)>,
    V: Send + 'static,
    M: FnOnce(&RecordKey, Outcome<V>) -> T,
{
    type Value = V;
    type Output = T;

    fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn poll_work(self: Pin<&mut Self>, _: &Arc<RunState>, cx: &mut Context<'_>) -> Poll<(V, Completion)> {
        match self.project().work.as_pin_mut() {
            Some(work) => work.poll(cx),
            None => panic!("polled after it was ready"),
        }
    }

    fn drop_work(self: Pin<&mut Self>) {
        self.project().work.set(None);
    }

    fn keeps_panics(&self) -> bool {
        self.settings.policy.keeps_panics()
    }

    fn completion_of_panic(self: Pin<&mut Self>, state: &RunState) -> Completion {
        let policy = &self.settings.policy;
        if !policy.keeps_panics() {
            return Completion::Release(policy.retention);
        }
        Completion::Fail(retention(state, policy))
    }

    fn remembers_rolled_back(&self, attempt: u32) -> Option<Duration> {
        self.settings.counts.as_ref().map(|remembered| remembered(attempt))
    }

    fn respond(self: Pin<&mut Self>, state: &RunState, outcome: Outcome<V>) -> T {
        match self.project().map.take() {
            Some(map) => map(&state.key, outcome),
            None => panic!("polled after it was ready"),
        }
    }
}

/// Returns how long the end of a run is kept: as the handler has directed, or as the policy states.
pub(crate) fn retention(state: &RunState, policy: &RunSettings) -> Duration {
    match state.directives().retain {
        Some(Retain::For(retention)) => retention,
        Some(Retain::No) | None => policy.retention,
    }
}
