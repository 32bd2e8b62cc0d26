use std::time::Duration;

use crate::value::Reply;

/// How a duplicate of an ended request is answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// The first one's answer, marked as a replay.
    Replay,
    /// 409 `duplicate-request`.
    Reject,
    /// An answer of one's own, in place of a kept success.
    ///
    /// A kept failure (4xx or 5xx) is replayed as it was, since a client may read the application's answer as success.
    /// A duplicate is refused if the record's content cannot be read (409 `response-not-retained`), or if the record
    /// states that the request failed (500 `handler-failed`).
    Respond(Reply),
    /// The duplicate reaches the handler, which sees in its [`Operation`](crate::Operation) that it [is a
    /// duplicate](crate::Operation::is_duplicate), and [what was kept](crate::Operation::kept).
    ///
    /// This is for answers that have to be derived from today's state. Nothing is claimed or recorded for the
    /// duplicate, so several of them run at the same time: the handler must only read. In transaction mode there is no
    /// transaction for it: the handler looks at its `Operation` before it takes one, since the extractor `Tx` would
    /// answer with 500. A record of a [failure](crate::reconcile::Payload::failed) without an answer is refused with
    /// `handler-failed`. A request that loses its claim while its handler runs receives the kept answer instead of its
    /// own.
    PassThrough,
}

/// How a duplicate of a running request is answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WhileRunning {
    /// 409 `request-in-progress` with `Retry-After`.
    Refuse,
    /// A wait for this long at most, then the answer for a duplicate of an ended request. If the first request fails,
    /// exactly one of the waiting ones runs next.
    Wait(Duration),
    /// An answer of one's own. It is sent with a `Retry-After`, which is added if it has none.
    Respond(Reply),
    /// A wait as with [`Wait`](Self::Wait). If the first request still runs then, an answer of one's own, with a
    /// `Retry-After` added if it has none.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use http::{Response, StatusCode};
    /// use tower_idempotency::{Policy, WhileRunning, policy::Reply};
    ///
    /// // Most HTTP clients try again after a 503, and few after a 409.
    /// let mut later = Response::default();
    /// *later.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    /// let ten_seconds = Duration::from_secs(10);
    /// let policy = Policy::replay().while_running(WhileRunning::WaitThenRespond(ten_seconds, Reply::fixed(later)));
    /// # drop(policy);
    /// ```
    WaitThenRespond(Duration, Reply),
}

/// What happens once the lease of a running operation has lapsed, as after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterCrash {
    /// The next try of the same operation runs, and sees that it is not the first.
    RunAgain,
    /// The operation does not run again: a retry is refused (`outcome-unknown`) until somebody finds out how the first
    /// one ended. The record is kept for 30 days, or for the [retention](crate::RunPolicy::retention) if that is longer;
    /// after that the same key runs again. Check [`Operation::is_lost`](crate::Operation::is_lost) right before the
    /// effect.
    Never,
}
