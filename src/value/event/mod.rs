//! What is reported: `Event`, and the details in it (`detail`); by what it is found (`look`); who receives it
//! (`observer`).

mod detail;
mod look;
mod observer;

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use http::StatusCode;

pub(crate) use self::{detail::status_of, observer::Observers};
pub use self::{
    detail::{DeadLetterReason, DropReason, NotKept, StoreVerb, WaitEnd},
    observer::Observer,
};
use super::{Protection, RecordKey, Refusal, StoreError, SweepReport, TraceContext};

/// An event of a layer, a store, an outbox or a reconciler, for an [`Observer`].
///
/// [`name`](Self::name), [`route`](Self::route) and [`key`](Self::key) return what most events have. Durations are those
/// of Tokio's clock.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request was refused and not run. Refusals for a quota are among them: `too-many-unfinished`, `server-busy`,
    /// `store-full`.
    #[non_exhaustive]
    Refused {
        /// The route of the operation.
        route: &'a str,
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
        /// The status of the kept answer; `None` for messages and functions.
        status: Option<StatusCode>,
        /// How long ago the answer was kept, by the wall clocks of the two processes; `None` if that is not known, as for
        /// messages and functions.
        age: Option<Duration>,
        /// The trace context of the run whose answer this is, if the layer
        /// [keeps it](crate::IdempotencyLayer::trace_context).
        trace: Option<TraceContext>,
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
        /// The route of the request.
        route: &'a str,
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
        /// The route of the operation.
        route: &'a str,
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
        /// The status of the handler's answer; `None` for messages and functions, and if there was no answer.
        status: Option<StatusCode>,
        /// The size of what was kept, in bytes; 0 for a tombstone.
        kept: usize,
        /// Why only a tombstone was kept; `None` if the answer was kept.
        not_kept: Option<NotKept>,
        /// How long the work ran, from the grant of its claim to its end.
        ran: Duration,
        /// How long it took to record its end, all tries together.
        took: Duration,
    },
    /// The handler ended, and the key is free for the next try.
    #[non_exhaustive]
    Released {
        /// The operation.
        key: &'a RecordKey,
        /// The status of the handler's answer; `None` for messages and functions, and if there was no answer.
        status: Option<StatusCode>,
        /// How long the work ran, from the grant of its claim to its end.
        ran: Duration,
        /// How long it took to record its end, all tries together.
        took: Duration,
    },
    /// A claim that the store had not answered was released in the background.
    #[non_exhaustive]
    Withdrawn {
        /// The operation.
        key: &'a RecordKey,
    },
    /// A duplicate begins to wait for the end of the first one.
    #[non_exhaustive]
    Waiting {
        /// The operation.
        key: &'a RecordKey,
    },
    /// A duplicate has waited for the end of the first one. Each [`Waiting`](Self::Waiting) is followed by one of these.
    #[non_exhaustive]
    Waited {
        /// The operation.
        key: &'a RecordKey,
        /// How long it has waited.
        waited: Duration,
        /// How the wait ended.
        end: WaitEnd,
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
    /// A client left, and its work goes on without it, as a background task.
    #[non_exhaustive]
    Detached {
        /// The operation.
        key: &'a RecordKey,
    },
    /// Work whose client had left has ended by itself. How it ended is another event, such as
    /// [`Settled`](Self::Settled), which came before this one.
    #[non_exhaustive]
    BackgroundEnded {
        /// The operation.
        key: &'a RecordKey,
        /// How long it went on without its client.
        after: Duration,
    },
    /// A client left, and its work was dropped, at once or later. The claim lapses.
    #[non_exhaustive]
    Dropped {
        /// The operation.
        key: &'a RecordKey,
        /// Why it was dropped.
        reason: DropReason,
        /// How long it went on without its client; zero if it was dropped at once.
        after: Duration,
    },
    /// A token was issued.
    #[non_exhaustive]
    TokenIssued {
        /// The purpose of the token.
        purpose: &'a str,
        /// How long it took.
        took: Duration,
    },
    /// A token was not issued, since the store failed or is full, or the purpose or the principal is not valid.
    #[non_exhaustive]
    TokenNotIssued {
        /// The purpose of the token.
        purpose: &'a str,
        /// The reason.
        error: &'a StoreError,
    },
    /// A consumer asks for a message to be put aside: another delivery would change nothing. It is reported
    /// before the application has passed that on to the broker.
    #[non_exhaustive]
    DeadLettered {
        /// The name of the consumer.
        route: &'a str,
        /// The operation; `None` if the message has no valid key.
        key: Option<&'a RecordKey>,
        /// The reason.
        reason: DeadLetterReason,
    },
    /// A message was staged in an outbox. It is sent if the transaction is committed.
    #[non_exhaustive]
    OutboxStaged {
        /// The topic of the message.
        topic: &'a str,
    },
    /// A message of an outbox was sent.
    #[non_exhaustive]
    OutboxSent {
        /// The topic of the message.
        topic: &'a str,
        /// The number of tries, including this one.
        attempt: u32,
        /// When the message was staged, by the database's clock.
        staged: SystemTime,
    },
    /// A message of an outbox was not sent, and will be tried again.
    #[non_exhaustive]
    OutboxRetried {
        /// The topic of the message.
        topic: &'a str,
        /// The number of tries, including this one.
        attempt: u32,
        /// The error of the sender.
        error: &'a str,
        /// The delay before the next try.
        pause: Duration,
    },
    /// A message of an outbox was not sent for as long as the [`Reconciler`](crate::Reconciler) asks about, which has
    /// now asked the application about it.
    #[non_exhaustive]
    OutboxStuck {
        /// The topic of the message.
        topic: &'a str,
        /// How often it was tried.
        attempts: u32,
        /// Whether the application has discarded it.
        discarded: bool,
    },
    /// A relay has counted what its outbox holds, which it does every ten seconds.
    #[non_exhaustive]
    OutboxBacklog {
        /// How many messages are not sent.
        unsent: u64,
        /// How long ago the oldest of them was staged; `None` if there is none.
        oldest: Option<Duration>,
    },
    /// A reconciler has looked through its store.
    #[non_exhaustive]
    Reconciled {
        /// What it found, and what became of it.
        sweep: &'a SweepReport,
        /// How long it took.
        took: Duration,
    },
    /// A reconciler could not look through its store to the end.
    #[non_exhaustive]
    ReconcileFailed {
        /// The error of the store.
        error: &'a StoreError,
    },
    /// Expired records, or messages that were sent long ago, were removed.
    #[non_exhaustive]
    Purged {
        /// The table that they were removed from.
        table: &'a str,
        /// How many were removed.
        removed: u64,
        /// How long it took.
        took: Duration,
    },
    /// What has expired could not be removed. The next round tries again.
    #[non_exhaustive]
    PurgeFailed {
        /// The table.
        table: &'a str,
        /// The error of the database.
        error: &'a StoreError,
    },
}

impl fmt::Display for Event<'_> {
    /// Writes the [name](Event::name).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
