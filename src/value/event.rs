use std::{fmt, sync::Arc, time::Duration};

use http::StatusCode;

use super::{Protection, RecordKey, Refusal, StoreError};

/// An event of a layer, for an [`Observer`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request was refused and not run.
    #[non_exhaustive]
    Refused {
        /// The operation; `None` if it was refused before it had a valid key.
        key: Option<&'a RecordKey>,
        /// The reason.
        refusal: &'a Refusal,
    },
    /// A duplicate received the kept answer.
    #[non_exhaustive]
    Replayed {
        /// The operation.
        key: &'a RecordKey,
        /// How long ago the answer was kept, by the wall clocks of the two processes; `None` if that is not known.
        age: Option<Duration>,
    },
    /// A duplicate received an answer of the application's own.
    #[non_exhaustive]
    Responded {
        /// The operation.
        key: &'a RecordKey,
    },
    /// A duplicate did not receive the kept answer, since [`on_replay`](crate::IdempotencyLayer::on_replay) refused it.
    #[non_exhaustive]
    ReplayRefused {
        /// The operation.
        key: &'a RecordKey,
        /// The status of the application's answer.
        status: StatusCode,
    },
    /// A request did not pass the application's [`verify`](crate::IdempotencyLayer::verify): nothing was claimed for
    /// it.
    #[non_exhaustive]
    Unverified {
        /// The status of the application's answer.
        status: StatusCode,
    },
    /// A [switch](crate::Switch) of the layer has another position. It is reported with the first request after that.
    #[non_exhaustive]
    Switched {
        /// The position now.
        protection: Protection,
        /// The position before.
        before: Protection,
    },
    /// A request was let through that would have been refused if its [switch](crate::Switch) were on.
    #[non_exhaustive]
    WouldRefuse {
        /// The operation; `None` if the request has no valid key.
        key: Option<&'a RecordKey>,
        /// The reason.
        refusal: &'a Refusal,
    },
    /// A duplicate was let through that would have received the kept answer, or the application's own, if its
    /// [switch](crate::Switch) were on.
    #[non_exhaustive]
    WouldReplay {
        /// The operation.
        key: &'a RecordKey,
    },
    /// A request's key was claimed, and the request is run.
    #[non_exhaustive]
    Claimed {
        /// The operation.
        key: &'a RecordKey,
        /// The number of this attempt.
        attempt: u32,
        /// Whether the claim before it had lapsed.
        takeover: bool,
        /// How long the store took to grant it.
        took: Duration,
    },
    /// The handler ended. Its answer was kept or, as a tombstone, only the fact that it ran.
    #[non_exhaustive]
    Settled {
        /// The operation.
        key: &'a RecordKey,
        /// Whether only a tombstone was kept, and no answer.
        tombstone: bool,
        /// The size of what was kept, in bytes; 0 for a tombstone.
        kept: usize,
        /// The time since the claim was sent: the claim, the run, and its record.
        after: Duration,
    },
    /// The handler ended, and the key is free for the next try.
    #[non_exhaustive]
    Released {
        /// The operation.
        key: &'a RecordKey,
        /// The time since the claim was sent; zero if the claim was never answered.
        after: Duration,
    },
    /// A duplicate has waited for the end of the first one.
    #[non_exhaustive]
    Waited {
        /// The operation.
        key: &'a RecordKey,
        /// How long it has waited.
        waited: Duration,
        /// Whether the first one has ended. Otherwise the wait was over before, and the duplicate is refused.
        ended: bool,
    },
    /// A request without a key reached the inner service unprotected, as
    /// [`key_optional`](crate::IdempotencyLayer::key_optional) admits.
    #[non_exhaustive]
    Keyless {
        /// The route of the request.
        route: &'a str,
    },
    /// The claim was lost to another request while the handler ran.
    #[non_exhaustive]
    ClaimLost {
        /// The operation.
        key: &'a RecordKey,
        /// The number of the attempt that lost it.
        attempt: u32,
    },
    /// A handler was not polled for longer than its lease, so that another request could have taken over its claim. The
    /// handler blocked its thread, or the machine stood still.
    #[non_exhaustive]
    Stalled {
        /// The operation.
        key: &'a RecordKey,
        /// The time for which the lease had not been renewed.
        after: Duration,
    },
    /// A call to the store failed or took too long.
    #[non_exhaustive]
    StoreFailed {
        /// The operation.
        key: &'a RecordKey,
        /// The verb that was called.
        verb: StoreVerb,
        /// The error of the store.
        error: &'a StoreError,
        /// Whether the call will be tried again.
        retried: bool,
    },
    /// The outcome of a request could not be recorded. The layer gives up, and the claim lapses.
    #[non_exhaustive]
    NotRecorded {
        /// The operation.
        key: &'a RecordKey,
        /// The verb that could not be completed: settle or release.
        verb: StoreVerb,
    },
    /// The store failed or was full, and the route lets such requests through unprotected.
    #[non_exhaustive]
    FailedOpen {
        /// The operation.
        key: &'a RecordKey,
        /// The error because of which the store did not claim the key.
        error: &'a StoreError,
    },
    /// A client left, and its work goes on without it.
    #[non_exhaustive]
    Detached {
        /// The operation.
        key: &'a RecordKey,
    },
    /// A client left, and its work was dropped: there were too many background tasks, the work took too long, or the
    /// layer [cancels on disconnect](crate::IdempotencyLayer::cancel_on_disconnect). The claim lapses.
    #[non_exhaustive]
    Dropped {
        /// The operation.
        key: &'a RecordKey,
        /// The time that the work had run, if the time bound ended it.
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

/// A receiver of a layer's events, for metrics and audits.
///
/// It is called where events occur, on the request's own path, so it should be quick and must not block. Its panics are
/// caught and change nothing, since it is called while keys are claimed.
///
/// An observer in an `Arc` is one too, so that the application can keep the other half:
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicU64, Ordering}};
/// use tower_idempotency::{Event, IdempotencyLayer, MemoryStore, Observer};
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
///
/// let replays = Arc::new(Replays::default());
/// let layer = IdempotencyLayer::new(MemoryStore::new()).observer(replays.clone());
/// assert_eq!(replays.0.load(Ordering::Relaxed), 0);
/// # drop(layer);
/// ```
///
/// So is a closure:
///
/// ```
/// use tower_idempotency::{Event, IdempotencyLayer, MemoryStore};
///
/// let layer = IdempotencyLayer::new(MemoryStore::new()).observer(|event: &Event<'_>| {
///     if let Event::ClaimLost { key, attempt, .. } = event {
///         eprintln!("attempt {attempt} of {} was overtaken", key.route());
///     }
/// });
/// # drop(layer);
/// ```
pub trait Observer: Send + Sync + 'static {
    /// Handles an event.
    fn on_event(&self, event: &Event<'_>);
}

impl<F: Fn(&Event<'_>) + Send + Sync + 'static> Observer for F {
    fn on_event(&self, event: &Event<'_>) {
        self(event);
    }
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn on_event(&self, event: &Event<'_>) {
        (**self).on_event(event);
    }
}
