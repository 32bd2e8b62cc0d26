//! What a message comes to: every outcome of the engine is listed, without a wildcard, since one that is forgotten would
//! lose messages.

use super::{Consumed, settings::Settings};
use crate::{
    engine::{NotRun, Outcome, Standing},
    value::{Event, RecordKey, Refusal, is_failure, is_sealed},
};

impl<M> Settings<M> {
    /// Returns what the caller receives.
    pub(super) fn consumed<T, E>(&self, key: &RecordKey, outcome: Outcome<Consumed<T, E>>) -> Consumed<T, E> {
        let consumed = self.consumed_of(key, outcome);
        self.report_dead_letter(Some(key), &consumed);
        consumed
    }

    /// Reports a message that is to be put aside.
    pub(super) fn report_dead_letter<T, E>(&self, key: Option<&RecordKey>, consumed: &Consumed<T, E>) {
        if let Some(reason) = consumed.dead_letter_reason() {
            self.engine.report(&Event::DeadLettered { route: &self.name, key, reason });
        }
    }

    fn consumed_of<T, E>(&self, key: &RecordKey, outcome: Outcome<Consumed<T, E>>) -> Consumed<T, E> {
        match outcome {
            Outcome::Completed { value, recorded: true | false } => value,
            Outcome::NotRun(NotRun::Settled(payload, _)) | Outcome::Overtaken(Standing::Settled(payload))
                if is_sealed(payload.as_ref()) =>
            {
                // It may have failed: it is neither acknowledged nor dead-lettered.
                self.report_refusal(key, &Refusal::AnswerUnreadable);
                Consumed::Unavailable { retry_after: self.retry_after }
            }
            Outcome::NotRun(NotRun::Settled(payload, _)) | Outcome::Overtaken(Standing::Settled(payload)) => {
                self.engine.report(&Event::Replayed { key, status: None, age: None, trace: None });
                if is_failure(payload.as_ref()) {
                    Consumed::FailedPermanently { error: None }
                } else {
                    Consumed::AlreadyDone
                }
            }
            Outcome::Overtaken(Standing::Running(left)) => {
                self.report_refusal(key, &Refusal::RequestInProgress { left });
                Consumed::InProgress { retry_after: self.delay_beside(left) }
            }
            Outcome::RolledBack { attempt } => {
                self.report_refusal(key, &Refusal::RolledBack);
                if self.is_last(attempt) {
                    Consumed::Exhausted { error: None, attempts: attempt }
                } else {
                    Consumed::RolledBack { attempt, retry_after: self.pause(attempt) }
                }
            }
            Outcome::CommitUnknown => {
                self.report_refusal(key, &Refusal::CommitUnknown);
                Consumed::CommitUnknown { retry_after: self.retry_after }
            }
            Outcome::NotRun(why) => {
                self.report_refusal(key, &why.refusal());
                self.not_run(&why)
            }
        }
    }

    fn report_refusal(&self, key: &RecordKey, refusal: &Refusal) {
        self.engine.report(&Event::Refused { route: key.route(), key: Some(key), refusal });
    }

    /// Returns the `Consumed` of a message that was not run. Each reason is listed: a reason that is forgotten would lose
    /// messages.
    fn not_run<T, E>(&self, why: &NotRun) -> Consumed<T, E> {
        match *why {
            // A settled record is mapped before.
            NotRun::Settled(..) => Consumed::AlreadyDone,
            NotRun::Running(left) => Consumed::InProgress { retry_after: self.delay_beside(left) },
            NotRun::Mismatch(mismatch) => Consumed::Mismatch { mismatch },
            NotRun::OutcomeUnknown => Consumed::OutcomeUnknown,
            NotRun::NotIssued => Consumed::Rejected { refusal: why.refusal() },
            NotRun::Incompatible | NotRun::TooManyTasks(_) | NotRun::Unavailable { .. } => {
                Consumed::Unavailable { retry_after: self.retry_after }
            }
        }
    }
}
