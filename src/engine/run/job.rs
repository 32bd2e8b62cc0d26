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
    /// What the caller receives.
    type Output;

    fn engine(&self) -> &Arc<Engine>;

    /// Does the work, keeps what it produces, and returns what is to be recorded. A panic is caught, and resumed after the
    /// claim has ended.
    fn poll_work(self: Pin<&mut Self>, state: &RunState, cx: &mut Context<'_>) -> Poll<Completion>;

    /// Drops the work, which has ended or panicked, but not what it has produced. The work is gone before its claim is
    /// ended.
    fn drop_work(self: Pin<&mut Self>);

    /// Returns whether a panic is recorded even if the client has left: it then cannot be that the work lacks the
    /// client's task-locals.
    fn keeps_panics(&self) -> bool;

    /// Returns what is recorded of work that has panicked.
    fn completion_of_panic(self: Pin<&mut Self>, state: &RunState) -> Completion;

    /// Returns for how long an attempt is counted whose transaction was rolled back. `None`: it is not counted.
    fn remembers_rolled_back(&self, attempt: u32) -> Option<Duration>;

    /// Returns what the caller receives. If the work has completed, that is what it has produced.
    fn respond(self: Pin<&mut Self>, state: &RunState, outcome: Outcome<()>) -> Self::Output;
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
    pub(crate) struct FnJob<F, V, M> {
        engine: Arc<Engine>,
        settings: FnSettings,
        #[pin]
        work: Option<F>,
        value: Option<V>,
        map: Option<M>,
    }
}

impl<F, V, M> FnJob<F, V, M> {
    pub(crate) fn new(engine: Arc<Engine>, settings: FnSettings, work: F, map: M) -> Self {
        Self { engine, settings, work: Some(work), value: None, map: Some(map) }
    }
}

impl<F, V, M, T> Job for FnJob<F, V, M>
where
    F: Future<Output = (V, Completion)>,
    M: FnOnce(&RecordKey, Outcome<V>) -> T,
{
    type Output = T;

    fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn poll_work(self: Pin<&mut Self>, _: &RunState, cx: &mut Context<'_>) -> Poll<Completion> {
        let this = self.project();
        match this.work.as_pin_mut() {
            Some(work) => work.poll(cx).map(|(value, completion)| {
                *this.value = Some(value);
                completion
            }),
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

    fn respond(self: Pin<&mut Self>, state: &RunState, outcome: Outcome<()>) -> T {
        let this = self.project();
        let value = || this.value.take().unwrap_or_else(|| panic!("polled after it was ready"));
        match this.map.take() {
            Some(map) => map(&state.key, outcome.with(value)),
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
