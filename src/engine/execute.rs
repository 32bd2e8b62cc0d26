//! One execution from claim to end, for operations that are not HTTP requests.
//!
//! The job returns its outcome together with the fate of its record, so that what is recorded cannot differ from what
//! the caller gets. The outcomes are listed without a wildcard wherever they are mapped: a reason that is forgotten
//! would lose a message.

use std::{future::Future, panic::resume_unwind, pin::pin, time::Duration};

use bytes::Bytes;

use super::{
    Admission, Ask, CatchUnwind, EndRequest, Engine, FinishOutcome, Party, Run, RunContext, Stage, Work,
    bounded::bounded,
};
use crate::{
    store::{FailedAttempt, Granted},
    value::{Claim, Event, Mismatch, Payload, Record, RecordKey, Refusal, Retain, RunSettings, State, StoreVerb},
};

/// An operation that is not an HTTP request: a message, a function, a case of reconciliation.
pub(crate) struct Execution<'a> {
    pub(crate) key: &'a RecordKey,
    pub(crate) claim: &'a Claim,
    pub(crate) policy: &'a RunSettings,
    /// Returns for how long an attempt is counted whose transaction was rolled back. Without it such attempts are not
    /// counted.
    pub(crate) counts: Option<&'a (dyn Fn(u32) -> Duration + Sync)>,
}

/// The outcome of an execution.
pub(crate) enum ExecutionOutcome<T> {
    /// It ran, and its result is valid: no record contradicts it.
    Ran(T),
    /// An earlier try has settled it. `None` is a tombstone.
    Settled(Option<Bytes>),
    /// There is no result for its caller.
    NoOutcome(NoOutcome),
}

/// Why an execution has no result.
pub(crate) enum NoOutcome {
    /// Another try runs. Its lease ends after this time.
    Running(Duration),
    /// The key belongs to another content or caller.
    Mismatch(Mismatch),
    /// It began, must not run again, and its outcome was never recorded.
    OutcomeUnknown,
    /// The key had to be issued (a token), and was not.
    NotIssued,
    /// It ran, and what it did in its transaction is undone.
    RolledBack { attempt: u32 },
    /// It ran, and whether its transaction was committed is not known.
    CommitUnknown,
    /// Its record is one that this process cannot read.
    Incompatible,
    /// It did not run: the store failed or is full, or there are too many background tasks.
    NotNow(Refusal),
}

impl NoOutcome {
    pub(crate) fn refusal(&self) -> Refusal {
        match *self {
            Self::Running(left) => Refusal::RequestInProgress { left },
            Self::Mismatch(mismatch) => mismatch.into(),
            Self::OutcomeUnknown => Refusal::OutcomeUnknown,
            Self::NotIssued => Refusal::TokenInvalid,
            Self::RolledBack { .. } => Refusal::RolledBack,
            Self::CommitUnknown => Refusal::CommitUnknown,
            Self::Incompatible => Refusal::RecordIncompatible,
            Self::NotNow(ref refusal) => refusal.clone(),
        }
    }
}

impl<T> From<NoOutcome> for ExecutionOutcome<T> {
    fn from(why: NoOutcome) -> Self {
        Self::NoOutcome(why)
    }
}

/// What is recorded of an execution that ran.
pub(crate) enum Completion {
    /// It is settled, with a payload or as a tombstone.
    Settle(Option<Bytes>),
    /// It is settled as failed for good. What it did in a transaction is rolled back.
    Fail,
    /// It is released, and its attempts are remembered for this long.
    Release(Duration),
}

impl Execution<'_> {
    /// Returns the outcome of a run that lost its claim, which its record decides.
    fn late<T>(&self, record: Option<Box<Record>>) -> ExecutionOutcome<T> {
        match record.filter(|record| record.is_of(self.claim)) {
            Some(record) if record.state == State::Settled => ExecutionOutcome::Settled(record.payload),
            record => NoOutcome::Running(record.map_or(Duration::ZERO, |it| it.lease_left)).into(),
        }
    }

    /// Returns what is recorded of an attempt whose transaction was rolled back.
    fn rolled_back(&self, granted: Granted) -> Option<FailedAttempt> {
        self.counts.map(|remembered| FailedAttempt::new(granted, None, remembered(granted.attempt)))
    }
}

impl Engine {
    /// Runs `job` if its claim is granted, and ends the claim.
    ///
    /// # Panics
    ///
    /// Panics if `job` panics, after the claim has been ended.
    pub(crate) async fn execute<T, F>(
        &self,
        work: &Work,
        execution: Execution<'_>,
        job: impl FnOnce(RunContext) -> F,
    ) -> ExecutionOutcome<T>
    where
        F: Future<Output = (T, Completion)>,
    {
        let stage = if self.cancel_on_disconnect { Stage::Attached } else { Stage::Claimed };
        // The address of its engine identifies a layer.
        let party = execution.key.scope().map_or(Party::Layer(std::ptr::from_ref(self).addr()), |_| Party::Scope);
        let ask = Ask {
            work,
            key: execution.key,
            claim: execution.claim,
            stage,
            party: &party,
            patience: execution.policy.wait,
            body: 0,
        };
        match self.admit(ask).await {
            Admission::Refused(refusal) => NoOutcome::NotNow(refusal).into(),
            Admission::Run(run) => run.execute(&execution, job).await,
            Admission::Settled(payload, _) => ExecutionOutcome::Settled(payload),
            Admission::Running(left) => NoOutcome::Running(left).into(),
            Admission::Mismatch(mismatch) => NoOutcome::Mismatch(mismatch).into(),
            Admission::OutcomeUnknown => NoOutcome::OutcomeUnknown.into(),
            Admission::NotIssued => NoOutcome::NotIssued.into(),
            Admission::Incompatible => NoOutcome::Incompatible.into(),
            Admission::Failed { error, .. } => NoOutcome::NotNow(Refusal::from(&error)).into(),
        }
    }

    /// Records an attempt whose transaction was rolled back, in one statement of its own. If the store fails, the
    /// attempt does not count.
    async fn record_failure(&self, execution: &Execution<'_>, failed: FailedAttempt) {
        let Some(store) = &self.transactions else { return };
        let (key, settles) = (execution.key, failed.payload.is_some());
        let verb = if settles { StoreVerb::Settle } else { StoreVerb::Release };
        match bounded(store.record_failure(key, execution.claim, &failed), self.store_timeout).await {
            Ok(()) if settles => self.report(&Event::Settled { key, tombstone: false }),
            Ok(()) => {}
            Err(error) => {
                self.report(&Event::StoreFailed { key, verb, error: &error, retried: false });
                self.report(&Event::NotRecorded { key, verb });
            }
        }
    }
}

impl Run<'_> {
    async fn execute<T, F>(
        mut self,
        execution: &Execution<'_>,
        job: impl FnOnce(RunContext) -> F,
    ) -> ExecutionOutcome<T>
    where
        F: Future<Output = (T, Completion)>,
    {
        let (policy, work, engine, granted) = (execution.policy, self.work, self.engine, self.granted);
        let started = self.started();
        // Inside the future, so that what panics before it is polled is caught as well.
        let job = async move { job(started).await };
        let (outcome, completion) = match self.hold(pin!(CatchUnwind::new(job))).await {
            Ok((outcome, completion)) => (Ok(outcome), completion),
            // Without its caller the work has lost its task-locals, which may be why it panicked.
            Err(panic) if work.is_detached() && !policy.keeps_panics() => resume_unwind(panic),
            Err(panic) if policy.keeps_panics() => (Err(panic), Completion::Fail),
            Err(panic) => (Err(panic), Completion::Release(policy.retention)),
        };
        let (how, failed) = self.end_request(execution, completion);
        let ending = self.finish(how).await;
        let failed = match &ending {
            FinishOutcome::RolledBack => execution.rolled_back(granted),
            FinishOutcome::Recorded | FinishOutcome::Unrecorded | FinishOutcome::Lost(_) | FinishOutcome::Unknown => {
                failed
            }
        };
        if let Some(failed) = failed {
            engine.record_failure(execution, failed).await;
        }
        match (outcome, ending) {
            (Err(panic), _) => resume_unwind(panic),
            (Ok(outcome), FinishOutcome::Recorded | FinishOutcome::Unrecorded) => ExecutionOutcome::Ran(outcome),
            (Ok(_), FinishOutcome::Lost(record)) => execution.late(record),
            (Ok(_), FinishOutcome::RolledBack) => NoOutcome::RolledBack { attempt: granted.attempt }.into(),
            (Ok(_), FinishOutcome::Unknown) => NoOutcome::CommitUnknown.into(),
        }
    }

    /// How the run ends, and what is to be recorded once its transaction is rolled back.
    fn end_request(&self, execution: &Execution<'_>, completion: Completion) -> (EndRequest, Option<FailedAttempt>) {
        let retention = match self.work.wishes().retain {
            Some(Retain::For(retention)) => retention,
            _ => execution.policy.retention,
        };
        let (granted, transactional) = (self.granted, self.transaction.is_some());
        let failed = Payload::failed().into_bytes();
        match completion {
            Completion::Settle(payload) => (self.settlement(payload, retention), None),
            Completion::Fail if transactional => {
                (self.release(retention), Some(FailedAttempt::new(granted, failed, retention)))
            }
            Completion::Fail => (self.settlement(failed, retention), None),
            Completion::Release(keep) => {
                let counts = transactional && execution.counts.is_some();
                (self.release(keep), counts.then(|| FailedAttempt::new(granted, None, keep)))
            }
        }
    }
}
