use std::{future::Future, panic::resume_unwind, pin::pin, time::Duration};

use bytes::Bytes;

use super::{Admission, Ask, CatchUnwind, Ending, Engine, Party, Run, Stage, Started, Work};
use crate::value::{Claim, Payload, Policy, Record, RecordKey, Refusal, Retain, State};

/// An operation that is no HTTP request.
pub(crate) struct Errand<'a> {
    pub(crate) key: &'a RecordKey,
    pub(crate) claim: &'a Claim,
    pub(crate) policy: &'a Policy,
    pub(crate) attached: bool,
}

/// What came of an errand.
pub(crate) enum Performed<T> {
    /// It ran, and nothing is known that speaks against what came of it.
    Ran(T),
    /// It has ended in another try. `None` is a tombstone.
    Settled(Option<Bytes>),
    /// It was not run.
    Refused(Refusal),
}

/// What becomes of the record of an errand that ran.
pub(crate) enum Fate {
    /// It is settled, with a payload or as a tombstone.
    Settle(Option<Bytes>),
    /// It is released, and its attempts are remembered for this long.
    Release(Duration),
}

impl Errand<'_> {
    /// The record says what a run came to that lost its claim.
    fn late<T>(&self, record: Option<Box<Record>>) -> Performed<T> {
        match record.filter(|record| record.is_of(self.claim)) {
            Some(record) if record.state == State::Settled => Performed::Settled(record.payload),
            record => Performed::Refused(Refusal::RequestInProgress(record.map_or(Duration::ZERO, |it| it.lease_left))),
        }
    }
}

impl Engine {
    /// Runs `job` if its claim is granted, and ends the claim.
    ///
    /// # Panics
    ///
    /// Where `job` panics, after the claim has been ended.
    pub(crate) async fn perform<T, F>(
        &self,
        work: &Work,
        errand: Errand<'_>,
        job: impl FnOnce(Started) -> F,
    ) -> Performed<T>
    where
        F: Future<Output = (T, Fate)>,
    {
        let stage = if errand.attached { Stage::Attached } else { Stage::Claimed };
        let ask = Ask {
            work,
            key: errand.key,
            claim: errand.claim,
            stage,
            party: &Party::Layer(std::ptr::from_ref(self).addr()),
            patience: errand.policy.patience(),
            body: 0,
        };
        match self.admit(ask).await {
            Admission::Refused(refusal) => Performed::Refused(refusal),
            Admission::Run(run) => run.perform(&errand, job).await,
            Admission::Settled(payload) => Performed::Settled(payload),
            Admission::Running(left) => Performed::Refused(Refusal::RequestInProgress(left)),
            Admission::Mismatch(mismatch) => Performed::Refused(mismatch.into()),
            Admission::Incompatible => Performed::Refused(Refusal::RecordIncompatible),
            Admission::OutcomeUnknown => Performed::Refused(Refusal::OutcomeUnknown),
            Admission::NotIssued => Performed::Refused(Refusal::TokenInvalid),
            Admission::Failed { error, .. } => Performed::Refused(Refusal::from(&error)),
        }
    }
}

impl Run<'_> {
    async fn perform<T, F>(mut self, errand: &Errand<'_>, job: impl FnOnce(Started) -> F) -> Performed<T>
    where
        F: Future<Output = (T, Fate)>,
    {
        let (policy, work) = (errand.policy, self.work);
        let started = self.started();
        // What a transaction has done is rolled back with its claim, whatever the policy keeps.
        let keeps_panics = policy.keeps_panics() && started.slot.is_none();
        // Inside the future, so that what panics before it is polled is caught as well.
        let job = async move { job(started).await };
        let (outcome, fate) = match self.hold(pin!(CatchUnwind::new(job))).await {
            Ok((outcome, fate)) => (Ok(outcome), fate),
            // Without its caller the work has lost its task-locals, which may be why it panicked.
            Err(panic) if work.is_leftover() && !keeps_panics => resume_unwind(panic),
            Err(panic) if keeps_panics => (Err(panic), Fate::Settle(Payload::failed().into_bytes())),
            Err(panic) => (Err(panic), Fate::Release(policy.released_for(None))),
        };
        let retention = match work.wishes().retain {
            Some(Retain::For(retention)) => retention,
            _ => policy.retention,
        };
        let how = match fate {
            Fate::Settle(payload) => self.settlement(payload, retention),
            Fate::Release(keep) => self.release(keep),
        };
        let ending = self.finish(how).await;
        match (outcome, ending) {
            (Err(panic), _) => resume_unwind(panic),
            (Ok(outcome), Ending::Recorded | Ending::Unrecorded) => Performed::Ran(outcome),
            (Ok(_), Ending::Lost(record)) => errand.late(record),
            (Ok(_), Ending::RolledBack) => Performed::Refused(Refusal::RolledBack),
            (Ok(_), Ending::Unknown) => Performed::Refused(Refusal::CommitUnknown),
        }
    }
}
