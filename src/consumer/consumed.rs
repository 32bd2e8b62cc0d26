use std::time::Duration;

use crate::value::{DeadLetterReason, Mismatch, Refusal};

/// The outcome of a message: the answer of a [`Consumer`](super::Consumer).
///
/// [`action`](Self::action) returns what to do with the delivery:
///
/// | outcome | action |
/// | --- | --- |
/// | `Executed`, `AlreadyDone` | acknowledge |
/// | `InProgress`, `Failed`, `RolledBack`, `CommitUnknown`, `Unavailable` | requeue, with a delay |
/// | `FailedPermanently`, `Exhausted`, `Rejected`, `Mismatch`, `OutcomeUnknown` | dead-letter |
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the broker has to be told"]
#[non_exhaustive]
pub enum Consumed<T, E> {
    /// The message was handled now. This is recorded, or will be recorded in the background.
    Executed(T),
    /// The message was handled before.
    AlreadyDone,
    /// Another delivery of the message is being handled, and may still fail. If this one were acknowledged now, the
    /// message could be lost.
    #[non_exhaustive]
    InProgress {
        /// The delay before the next delivery.
        retry_after: Duration,
    },
    /// The message was not handled. Its key is released, so that the next delivery runs.
    #[non_exhaustive]
    Failed {
        /// The service's error.
        error: E,
        /// The number of tries, including this one.
        attempt: u32,
        /// The delay before the next delivery.
        retry_after: Duration,
    },
    /// The service handled the message, but the work in its transaction was rolled back: by the database, at the
    /// commit, or by the service itself. The next delivery runs.
    #[non_exhaustive]
    RolledBack {
        /// The number of tries, including this one.
        attempt: u32,
        /// The delay before the next delivery.
        retry_after: Duration,
    },
    /// The service handled the message, but the database did not report whether the transaction was committed, or took
    /// another transaction in its place (a serialization failure). The next delivery finds out: the message is already
    /// done, or it runs.
    #[non_exhaustive]
    CommitUnknown {
        /// The delay before the next delivery.
        retry_after: Duration,
    },
    /// The message was not handled, now or before, and no other try can change that: it never runs again.
    #[non_exhaustive]
    FailedPermanently {
        /// The service's error; `None` if it was returned to an earlier delivery.
        error: Option<E>,
    },
    /// The message was tried as often as [`attempts`](crate::ConsumerLayer::attempts) allows, and was not handled.
    #[non_exhaustive]
    Exhausted {
        /// The service's error at the last try; `None` if that try never returned, or was rolled back.
        error: Option<E>,
        /// The number of tries.
        attempts: u32,
    },
    /// The message has no key, no valid key or no scope, or it cannot be written as JSON for its fingerprint. The
    /// reason is `key-missing`, `key-invalid`, `scope-missing` or `body-invalid`.
    #[non_exhaustive]
    Rejected {
        /// The reason.
        refusal: Refusal,
    },
    /// The key belongs to a message with other content.
    #[non_exhaustive]
    Mismatch {
        /// The difference.
        mismatch: Mismatch,
    },
    /// The message was claimed before and must not be started again. It is unknown how the first run ended, or whether
    /// it started. This outcome is for [`Reconciler`]s. It may change by itself, and then the next delivery may be the
    /// first that is handled.
    ///
    /// [`Reconciler`]: crate::Reconciler
    OutcomeUnknown,
    /// The message was not handled. Whether it was handled before cannot be determined now, since the store is
    /// unavailable or full.
    #[non_exhaustive]
    Unavailable {
        /// The delay before the next delivery.
        retry_after: Duration,
    },
}

/// What to do with a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The broker can forget the message.
    Acknowledge,
    /// The broker should deliver the message again.
    Requeue {
        /// The delay before the next delivery.
        delay: Duration,
    },
    /// The broker should put the message aside: another delivery would change nothing.
    DeadLetter,
}

impl<T, E> Consumed<T, E> {
    /// Returns why the message is to be put aside, if it is.
    pub(super) fn dead_letter_reason(&self) -> Option<DeadLetterReason> {
        Some(match *self {
            Self::FailedPermanently { .. } => DeadLetterReason::FailedPermanently,
            Self::Exhausted { attempts, .. } => DeadLetterReason::Exhausted { attempts },
            Self::Rejected { .. } => DeadLetterReason::Rejected,
            Self::Mismatch { .. } => DeadLetterReason::Mismatch,
            Self::OutcomeUnknown => DeadLetterReason::OutcomeUnknown,
            Self::Executed(_)
            | Self::AlreadyDone
            | Self::InProgress { .. }
            | Self::Failed { .. }
            | Self::RolledBack { .. }
            | Self::CommitUnknown { .. }
            | Self::Unavailable { .. } => return None,
        })
    }

    /// Returns what to do with the delivery.
    #[must_use]
    pub fn action(&self) -> Action {
        match *self {
            Self::Executed(_) | Self::AlreadyDone => Action::Acknowledge,
            Self::InProgress { retry_after: delay }
            | Self::Failed { retry_after: delay, .. }
            | Self::RolledBack { retry_after: delay, .. }
            | Self::CommitUnknown { retry_after: delay }
            | Self::Unavailable { retry_after: delay } => Action::Requeue { delay },
            Self::FailedPermanently { .. }
            | Self::Exhausted { .. }
            | Self::Rejected { .. }
            | Self::Mismatch { .. }
            | Self::OutcomeUnknown => Action::DeadLetter,
        }
    }
}
