//! The future of a run: the work, then the end of its claim, then the response.
//!
//! The order is fixed: the work is dropped before the claim is ended, the claim is ended before the caller receives
//! anything, and a panic of the work is resumed after the claim has ended. In the background a panic is not followed by
//! a release: without its client the work has lost its task-locals, which may be why it panicked, so the claim is left
//! to its lease.

use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use pin_project_lite::pin_project;
use tokio::time::Instant;

use super::{
    Completion, Job, Outcome, Run, RunState, Standing,
    end_request::EndRequest,
    finish::{FinishOutcome, Tried},
    heartbeat::report_stall,
};
use crate::{
    engine::Engine,
    store::FailedAttempt,
    value::{NotKept, Payload, Record, State},
};

/// What the work has panicked with.
type Panic = Box<dyn Any + Send>;

/// The end of a claim that is not there at once.
struct Finishing {
    end: Pin<Box<dyn Future<Output = FinishOutcome> + Send>>,
    panic: Option<Panic>,
}

pin_project! {
    /// A run of a job, from its first poll to what the caller receives.
    ///
    /// # Cancellation
    ///
    /// If it is dropped, the work is dropped, and the claim lapses. [`Task`](crate::engine::Task) keeps it alive in the
    /// background instead.
    ///
    /// # Panics
    ///
    /// Panics if the job panics, after the claim has been ended.
    pub(crate) struct Execution<J> {
        #[pin]
        job: J,
        run: Run,
        // `None` while the work goes on.
        finishing: Option<Finishing>,
    }
}

impl<J: Job> Execution<J> {
    #[inline]
    pub(super) fn new(run: Run, job: J) -> Self {
        Self { job, run, finishing: None }
    }

    pub(in crate::engine) fn engine(&self) -> &Arc<Engine> {
        self.job.engine()
    }

    pub(in crate::engine) fn state(&self) -> &Arc<RunState> {
        &self.run.state
    }
}

impl<J: Job> Future for Execution<J> {
    type Output = J::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<J::Output> {
        let mut this = self.project();
        let finishing = match this.finishing {
            Some(finishing) => finishing,
            none => {
                let Some((panic, completion)) = work(&mut this.job, this.run, cx) else { return Poll::Pending };
                match end(&mut this.job, this.run, completion) {
                    Ended::Now(ending) => return Poll::Ready(respond(this.job, &this.run.state, panic, ending)),
                    Ended::Later(end) => none.insert(Finishing { end, panic }),
                }
            }
        };
        let polled = finishing.end.as_mut().poll(cx);
        if polled.is_pending() {
            this.run.state.capture_runtime();
        }
        let ending = ready!(polled);
        let panic = finishing.panic.take();
        Poll::Ready(respond(this.job, &this.run.state, panic, ending))
    }
}

/// Polls the work, and returns what is to be recorded, with the panic if it has panicked. `None`: it is pending.
fn work<J: Job>(job: &mut Pin<&mut J>, run: &mut Run, cx: &mut Context<'_>) -> Option<(Option<Panic>, Completion)> {
    match catch_unwind(AssertUnwindSafe(|| job.as_mut().poll_work(&run.state, cx))) {
        Ok(Poll::Ready(completion)) => {
            job.as_mut().drop_work();
            Some((None, completion))
        }
        Ok(Poll::Pending) => {
            run.state.capture_runtime();
            run.keep_alive(job.engine(), cx);
            None
        }
        Err(panic) => {
            job.as_mut().drop_work();
            if run.state.is_detached() && !job.keeps_panics() {
                resume_unwind(panic);
            }
            Some((Some(panic), job.as_mut().completion_of_panic(&run.state)))
        }
    }
}

/// How far the end of a claim has come.
enum Ended {
    Now(FinishOutcome),
    Later(Pin<Box<dyn Future<Output = FinishOutcome> + Send>>),
}

/// Ends the claim: at once, if the store is immediate and takes it, and otherwise by a future.
fn end<J: Job>(job: &mut Pin<&mut J>, run: &mut Run, completion: Completion) -> Ended {
    let engine = job.engine();
    let (mut end, failed) = run.end_request(completion, &**job);
    let start = Instant::now();
    if !engine.observers.is_empty() {
        run.state.set_work_ended(start);
    }
    report_stall(engine, &run.state, start);
    let tried = if engine.is_immediate { run.try_now(engine, &mut end) } else { Tried::NotYet };
    if let Tried::Ended(ending) = tried {
        return Ended::Now(ending);
    }
    // What follows may be dropped by its caller.
    run.state.begin_end();
    let rolled_back = job.remembers_rolled_back(run.state.granted.attempt);
    let rest = Run {
        state: run.state.clone(),
        heartbeat: run.heartbeat.take(),
        timer: run.timer.take(),
        transaction: run.transaction.take(),
    };
    let engine = engine.clone();
    Ended::Later(Box::pin(async move {
        let state = rest.state.clone();
        let transactional = rest.transaction.is_some();
        let ending = rest.finish(&engine, end, start, matches!(tried, Tried::Failed)).await;
        if transactional {
            let counts = |keep| FailedAttempt::new(state.granted, None, keep);
            let failed = if matches!(ending, FinishOutcome::RolledBack) { rolled_back.map(counts) } else { failed };
            if let Some(failed) = failed {
                engine.record_failure(&state, failed).await;
            }
        }
        ending
    }))
}

/// Returns what the caller receives once the claim has ended.
///
/// # Panics
///
/// Resumes the panic of the work.
fn respond<J: Job>(job: Pin<&mut J>, state: &RunState, panic: Option<Panic>, ending: FinishOutcome) -> J::Output {
    if let Some(panic) = panic {
        resume_unwind(panic);
    }
    let outcome = match ending {
        FinishOutcome::Recorded => Outcome::Completed { value: (), recorded: true },
        FinishOutcome::Unrecorded => Outcome::Completed { value: (), recorded: false },
        FinishOutcome::Lost(record) => Outcome::Overtaken(standing(state, record)),
        FinishOutcome::RolledBack => Outcome::RolledBack { attempt: state.granted.attempt },
        FinishOutcome::Unknown => Outcome::CommitUnknown,
    };
    job.respond(state, outcome)
}

/// Returns what a run goes by that has lost its claim: the record, if it is of the same request.
fn standing(state: &RunState, record: Option<Box<Record>>) -> Standing {
    match record.filter(|record| record.is_of(&state.claim)) {
        Some(record) if record.state == State::Settled => Standing::Settled(record.payload),
        record => Standing::Running(record.map(|record| record.lease_left).unwrap_or_default()),
    }
}

impl Run {
    /// Returns how the claim ends, and what is to be recorded once its transaction is rolled back.
    fn end_request<J: Job>(&self, completion: Completion, job: &J) -> (EndRequest, Option<FailedAttempt>) {
        let (claimant, granted) = (self.state.claim.claimant, self.state.granted);
        let transactional = self.transaction.is_some();
        match completion {
            Completion::Settle(payload, retention) => (EndRequest::settle(claimant, payload, retention), None),
            Completion::Fail(retention) => {
                let failed = Payload::failed().into_bytes();
                if transactional {
                    let failed = FailedAttempt::new(granted, failed, retention);
                    return (EndRequest::release(claimant, retention), Some(failed));
                }
                (EndRequest::settle(claimant, failed.ok_or(NotKept::NotSerializable), retention), None)
            }
            Completion::Release(keep) => {
                let counts = transactional && job.remembers_rolled_back(granted.attempt).is_some();
                (EndRequest::release(claimant, keep), counts.then(|| FailedAttempt::new(granted, None, keep)))
            }
            Completion::Undo(keep) => (EndRequest::undo(claimant, keep), None),
        }
    }
}
