//! An operation in its caller's task.
//!
//! Dropped before the claim it is simply gone. Dropped after it, the run is moved into a task of the runtime that it was
//! polled in, and polled to its end there. Nothing is spawned for a request whose client stays.

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::Instant;

use super::{ClaimRequest, Completion, Engine, FnJob, FnSettings, Job, Outcome, Run, RunState, run::Execution};
use crate::value::{DropReason, Event, RecordKey};

/// An operation in its caller's task: what comes before its run, then the run, which the runtime finishes if the caller
/// drops it.
///
/// In the caller's task, so that task-locals and spans stay those of the caller as long as there is one.
pub(crate) struct Task<T: 'static>(Phase<T>);

enum Phase<T: 'static> {
    /// Nothing is claimed, or a claim is on its way: dropped with its caller.
    Begins(Pin<Box<dyn Future<Output = Begun<T>> + Send>>),
    Runs(Running<T>),
    Ended,
}

/// What came of the beginning of an operation.
pub(crate) enum Begun<T: 'static> {
    /// It runs.
    Runs(Running<T>),
    /// It does not run, and its caller receives this.
    Ended(T),
}

/// A run that goes on if it is dropped.
pub(crate) struct Running<T: 'static> {
    /// Empty while it is polled: after a panic nothing is left that could be polled again.
    execution: Option<Pin<Box<dyn Detach<Output = T> + Send>>>,
    #[cfg(feature = "tracing")]
    span: Option<tracing::Span>,
}

/// A run, whatever its job is.
trait Detach: Future {
    fn engine(&self) -> &Arc<Engine>;
    fn state(&self) -> &Arc<RunState>;
}

impl<J: Job> Detach for Execution<J> {
    fn engine(&self) -> &Arc<Engine> {
        Execution::engine(self)
    }

    fn state(&self) -> &Arc<RunState> {
        Execution::state(self)
    }
}

impl<T: 'static> Task<T> {
    /// Creates a task that begins with a future: everything up to the grant, or all of it if nothing is claimed.
    pub(crate) fn begin(future: impl Future<Output = Begun<T>> + Send + 'static) -> Self {
        Self(Phase::Begins(Box::pin(future)))
    }

    /// Creates a task that begins with its run.
    pub(crate) fn running(running: Running<T>) -> Self {
        Self(Phase::Runs(running))
    }

    /// Creates a task that claims, runs `work`, and ends the claim. `map` makes what its caller receives.
    pub(crate) fn execute<F, V>(
        engine: Arc<Engine>,
        request: ClaimRequest,
        settings: FnSettings,
        work: impl FnOnce(Arc<RunState>) -> F + Send + 'static,
        map: impl FnOnce(&RecordKey, Outcome<V>) -> T + Send + 'static,
    ) -> Self
    where
        F: Future<Output = (V, Completion)> + Send + 'static,
        V: Send + 'static,
    {
        Self::begin(async move {
            match engine.admit(&request).await {
                Ok(grant) => {
                    let run = Run::new(&engine, request, grant);
                    let state = run.state.clone();
                    // Inside the future, so that what panics before it is polled is caught as well.
                    let work = async move { work(state).await };
                    Begun::Runs(Running::new(run, FnJob::new(engine, settings, work, map)))
                }
                Err(why) => Begun::Ended(map(&request.key, Outcome::NotRun(why))),
            }
        })
    }
}

impl<T: 'static> Running<T> {
    /// Begins to run a job.
    #[inline]
    pub(crate) fn new<J: Job<Output = T> + Send + 'static>(run: Run, job: J) -> Self {
        Self {
            execution: Some(Box::pin(run.execute(job))),
            #[cfg(feature = "tracing")]
            span: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<T> {
        let Some(mut execution) = self.execution.take() else { panic!("polled after it was ready") };
        if let Poll::Ready(value) = execution.as_mut().poll(cx) {
            return Poll::Ready(value);
        }
        self.execution = Some(execution);
        #[cfg(feature = "tracing")]
        self.span.get_or_insert_with(tracing::Span::current);
        Poll::Pending
    }
}

impl<T: 'static> Future for Task<T> {
    type Output = T;

    /// # Panics
    ///
    /// Panics if the work panics, or if it is polled after it ended.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Phase::Runs(running) = &mut self.0 {
            return running.poll(cx);
        }
        match mem::replace(&mut self.0, Phase::Ended) {
            Phase::Begins(mut begins) => match begins.as_mut().poll(cx) {
                Poll::Pending => {
                    self.0 = Phase::Begins(begins);
                    Poll::Pending
                }
                Poll::Ready(Begun::Ended(value)) => Poll::Ready(value),
                Poll::Ready(Begun::Runs(running)) => {
                    self.0 = Phase::Runs(running);
                    self.poll(cx)
                }
            },
            Phase::Runs(_) | Phase::Ended => panic!("polled after it was ready"),
        }
    }
}

impl<T: 'static> Drop for Running<T> {
    fn drop(&mut self) {
        let Some(execution) = self.execution.take() else { return };
        let (engine, state) = (execution.engine().clone(), execution.state().clone());
        let key = &state.key;
        let dropped_at_once = |reason| engine.report(&Event::Dropped { key, reason, after: Duration::ZERO });
        if state.is_attached() {
            return dropped_at_once(DropReason::CancelOnDisconnect);
        }
        let Some(runtime) = state.runtime() else { return dropped_at_once(DropReason::NoRuntime) };
        state.detach();
        let (ended, of_ended, since) = (engine.clone(), state.clone(), Instant::now());
        let rest = async move {
            execution.await;
            ended.report(&Event::BackgroundEnded { key: &of_ended.key, after: since.elapsed() });
        };
        #[cfg(feature = "tracing")]
        let rest = tracing::Instrument::instrument(rest, self.span.take().unwrap_or_else(tracing::Span::none));
        let (observed, late) = (engine.clone(), state.clone());
        let dropped = move |reason, after| observed.report(&Event::Dropped { key: &late.key, reason, after });
        engine.background_tasks.spawn(runtime, state.bucket(), rest, dropped);
        engine.report(&Event::Detached { key });
    }
}

impl<T: 'static> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}
