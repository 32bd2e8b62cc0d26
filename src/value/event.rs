use std::{fmt, time::Duration};

use http::StatusCode;

use super::{RecordKey, Refusal, StoreError};

/// Something that a layer did, for an [`Observer`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request was not run.
    Refused {
        /// The operation; `None` if it was refused before it had a valid key.
        key: Option<&'a RecordKey>,
        /// Why.
        refusal: &'a Refusal,
    },
    /// A duplicate got the kept answer.
    Replayed {
        /// The operation.
        key: &'a RecordKey,
    },
    /// A duplicate got an answer of the application's own.
    Responded {
        /// The operation.
        key: &'a RecordKey,
    },
    /// A request did not pass the application's [`verify`](crate::IdempotencyLayer::verify): nothing was claimed for it.
    Unverified {
        /// The status of the application's answer.
        status: StatusCode,
    },
    /// A request is run.
    Claimed {
        /// The operation.
        key: &'a RecordKey,
        /// The number of this attempt.
        attempt: u32,
        /// The claim before it had lapsed.
        takeover: bool,
    },
    /// The handler ended, and its answer was kept or, as a tombstone, that it ran.
    Settled {
        /// The operation.
        key: &'a RecordKey,
        /// No answer was kept.
        tombstone: bool,
    },
    /// The handler ended, and the key is free for the next try.
    Released {
        /// The operation.
        key: &'a RecordKey,
    },
    /// The claim went to another while the handler ran.
    ClaimLost {
        /// The operation.
        key: &'a RecordKey,
        /// The number of the attempt that lost it.
        attempt: u32,
    },
    /// A handler was not polled for longer than its lease, so that another request could have taken its claim over: it
    /// blocked its thread, or the machine stood still.
    Stalled {
        /// The operation.
        key: &'a RecordKey,
        /// For how long its lease had not been renewed.
        after: Duration,
    },
    /// A call to the store failed or took too long.
    StoreFailed {
        /// The operation.
        key: &'a RecordKey,
        /// What was asked of the store.
        verb: StoreVerb,
        /// How it failed.
        error: &'a StoreError,
        /// It will be tried again.
        retried: bool,
    },
    /// How a request ended could not be recorded; it is given up, and the claim lapses.
    NotRecorded {
        /// The operation.
        key: &'a RecordKey,
        /// What could not be done: settle or release.
        verb: StoreVerb,
    },
    /// The store failed or was full, and the route lets such requests through unprotected.
    FailedOpen {
        /// The operation.
        key: &'a RecordKey,
        /// Why the store did not claim it.
        error: &'a StoreError,
    },
    /// A client left, and its work goes on without it.
    Detached {
        /// The operation.
        key: &'a RecordKey,
    },
    /// A client left, and its work was dropped: too many background tasks, too long, or attached. The claim lapses.
    Dropped {
        /// The operation.
        key: &'a RecordKey,
        /// How long the work had run, if the time bound ended it.
        after: Option<Duration>,
    },
}

/// A verb of the [`Store`](crate::store::Store) trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreVerb {
    /// `issue`
    Issue,
    /// `claim`
    Claim,
    /// `renew`
    Renew,
    /// `settle`
    Settle,
    /// `release`
    Release,
    /// `changed`
    Changed,
}

impl fmt::Display for StoreVerb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Issue => "issue",
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Settle => "settle",
            Self::Release => "release",
            Self::Changed => "changed",
        })
    }
}

/// Is told what a layer does, for metrics and audits.
///
/// It is called where things happen, on the request's own path, so it should be quick and must not block. Its panics
/// are caught and change nothing, since it is called while keys are claimed.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tower_idempotency::{Event, Observer};
///
/// #[derive(Default)]
/// struct Replays(AtomicU64);
///
/// impl Observer for Replays {
///     fn on_event(&self, event: &Event<'_>) {
///         if let Event::Replayed { .. } = event {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Something happened.
    fn on_event(&self, event: &Event<'_>);
}
