//! What comes of an operation, and what is recorded of it. Every edge (requests, messages, functions, reconciliation)
//! maps an `Outcome` by a match without a wildcard: a case that is forgotten does not compile.

use std::time::Duration;

use bytes::Bytes;

use crate::value::{Mismatch, NotKept, Origin, Refusal, StoreError};

/// What came of an operation.
pub(crate) enum Outcome<V> {
    /// The job ran, and no record contradicts its value. `recorded` is `false` if the store has not taken the record
    /// yet, or does not take it.
    Completed { value: V, recorded: bool },
    /// The job ran and lost its claim. Its value is void: the record decides.
    Overtaken(Standing),
    /// The job ran, and what it did in its transaction is undone.
    RolledBack { attempt: u32 },
    /// The job ran, and whether its transaction was committed is not known.
    CommitUnknown,
    /// The job did not run.
    NotRun(NotRun),
}

/// What the record says to a run that has lost its claim.
pub(crate) enum Standing {
    /// The operation has ended, with this payload; `None` is a tombstone.
    Settled(Option<Bytes>),
    /// Another run holds the claim, whose lease ends after this time; zero if the record is gone.
    Running(Duration),
}

/// Why a job did not run.
pub(crate) enum NotRun {
    /// The operation has ended, with this payload; `None` is a tombstone. The origin is that of its first claim.
    Settled(Option<Bytes>, Origin),
    /// Another run holds the claim. Its lease ends after this time.
    Running(Duration),
    /// The key belongs to another content or caller.
    Mismatch(Mismatch),
    /// The record cannot be compared: a later version wrote it, or its secret is not available.
    Incompatible,
    /// The operation began, must not run again, and its outcome was never recorded.
    OutcomeUnknown,
    /// The key had to be issued (a token), and was not, or for another purpose or principal.
    NotIssued,
    /// The caller, or all callers together, have too many background tasks. The store was not asked.
    TooManyTasks(Refusal),
    /// The store failed. `running` is the lease of another run that the store had reported before.
    Unavailable { error: StoreError, running: Option<Duration> },
}

/// What is to be recorded of a job that ran. Each duration is how long the record is kept.
pub(crate) enum Completion {
    /// The operation is settled, with a payload or as a tombstone.
    Settle(Result<Bytes, NotKept>, Duration),
    /// The operation is settled as failed permanently. What the job did in a transaction is rolled back.
    Fail(Duration),
    /// The claim is released, and its attempts are remembered.
    Release(Duration),
    /// The attempt is undone, as if it had not been made. The duration is that of the attempts before it.
    Undo(Duration),
}

impl Outcome<()> {
    /// Adds the value of the work, if it has completed.
    pub(super) fn with<V>(self, value: impl FnOnce() -> V) -> Outcome<V> {
        match self {
            Self::Completed { value: (), recorded } => Outcome::Completed { value: value(), recorded },
            Self::Overtaken(standing) => Outcome::Overtaken(standing),
            Self::RolledBack { attempt } => Outcome::RolledBack { attempt },
            Self::CommitUnknown => Outcome::CommitUnknown,
            Self::NotRun(why) => Outcome::NotRun(why),
        }
    }
}

impl NotRun {
    /// Returns the refusal of a caller that receives no kept answer.
    pub(crate) fn refusal(&self) -> Refusal {
        match self {
            Self::Settled(..) => Refusal::DuplicateRequest,
            Self::Running(left) => Refusal::RequestInProgress { left: *left },
            Self::Mismatch(mismatch) => (*mismatch).into(),
            Self::Incompatible => Refusal::RecordIncompatible,
            Self::OutcomeUnknown => Refusal::OutcomeUnknown,
            Self::NotIssued => Refusal::TokenInvalid,
            Self::TooManyTasks(refusal) => refusal.clone(),
            Self::Unavailable { error, .. } => Refusal::from(error),
        }
    }
}
