use std::time::Duration;

use crate::value::{Mismatch, Refusal};

/// What came of a message: the answer of a [`Consumer`](super::Consumer).
///
/// Whoever has no wishes of its own asks for the [`action`](Self::action):
///
/// | outcome | action |
/// | --- | --- |
/// | `Executed`, `AlreadyDone` | acknowledge |
/// | `InProgress`, `Failed`, `RolledBack`, `CommitUnknown`, `Unavailable` | give back, with a delay |
/// | `FailedPermanently`, `Exhausted`, `Rejected`, `Mismatch`, `OutcomeUnknown` | dead-letter |
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "the broker has to be told"]
#[non_exhaustive]
pub enum Consumed<T, E> {
    /// It was handled now. That is recorded, or will be in the background.
    Executed(T),
    /// It was handled before.
    AlreadyDone,
    /// Another one handles it, and may fail to: to acknowledge it now could lose it.
    InProgress {
        /// When to look again.
        retry_after: Duration,
    },
    /// It was not handled. Its key is released, so that the next delivery runs.
    Failed {
        /// What the service said.
        error: E,
        /// How often it was tried, this time included.
        attempt: u32,
        /// When to try again.
        retry_after: Duration,
    },
    /// The service handled it, and what it did in its transaction was rolled back all the same: by the database, at the
    /// commit, or by the service itself. The next delivery runs.
    RolledBack {
        /// How often it was tried, this time included.
        attempt: u32,
        /// When to try again.
        retry_after: Duration,
    },
    /// The service handled it, and the database did not say whether the transaction was committed, or took another one in
    /// its place (a serialization failure). The next delivery finds out: it is already done, or it runs.
    CommitUnknown {
        /// When to look again.
        retry_after: Duration,
    },
    /// It was not handled, now or before, and no other try can change that: it never runs again.
    FailedPermanently {
        /// What the service said; `None` if it said so before.
        error: Option<E>,
    },
    /// It was tried as often as [`attempts`](super::ConsumerLayer::attempts) allows, and not handled.
    Exhausted {
        /// What the service said at the last try; `None` if that try never came back, or was rolled back.
        error: Option<E>,
        /// How often it was tried.
        attempts: u32,
    },
    /// It has no key, none that is valid, no scope, or cannot be written as JSON for its fingerprint. Why: `key-missing`,
    /// `key-invalid`, `scope-missing` or `body-invalid`.
    Rejected(Refusal),
    /// Its key belongs to a message with other content.
    Mismatch(Mismatch),
    /// It was claimed before, must not be begun again, and nobody knows how it ended, or whether it began. This is for
    /// [`Reconciler`]s. It may pass by itself, and then the next delivery may be the first that is handled.
    ///
    /// [`Reconciler`]: crate::Reconciler
    OutcomeUnknown,
    /// Whether it was handled before cannot be found out now, since the store is away or full. It was not handled.
    Unavailable {
        /// When to try again.
        retry_after: Duration,
    },
}

/// What to do with a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The broker can forget it.
    Acknowledge,
    /// The broker should deliver it again.
    Requeue {
        /// Not before this has passed.
        delay: Duration,
    },
    /// The broker should put it aside: to deliver it again would change nothing.
    DeadLetter,
}

impl<T, E> Consumed<T, E> {
    /// What to do with the delivery.
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
            | Self::Rejected(_)
            | Self::Mismatch(_)
            | Self::OutcomeUnknown => Action::DeadLetter,
        }
    }
}
