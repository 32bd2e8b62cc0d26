use std::time::Duration;

use http::StatusCode;

use super::{Keep, Reply};

/// The treatment of repeated requests: four axes, with times and limits.
///
/// | axis | choices | default |
/// | --- | --- | --- |
/// | [`on_duplicate`](Self::on_duplicate) | replay, reject, respond, pass through | replay |
/// | [`while_running`](Self::while_running) | refuse, wait, respond, wait and then respond | refuse |
/// | [`keep`](Self::keep) | success, final answers, everything, a closure | success |
/// | [`after_crash`](Self::after_crash) | run again, never | run again |
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{Policy, WhileRunning};
///
/// // A duplicate of a running request waits for its answer.
/// let wait = Policy::replay().while_running(WhileRunning::Wait(Duration::from_secs(5)));
/// // The same content twice within three seconds is refused.
/// let no_double_clicks = Policy::reject().retention(Duration::from_secs(3));
/// # drop((wait, no_double_clicks));
/// ```
#[derive(Clone, Debug)]
#[must_use = "a policy does nothing until a layer has it"]
pub struct Policy {
    pub(crate) on_duplicate: OnDuplicate,
    pub(crate) while_running: WhileRunning,
    pub(crate) keep: Keep,
    pub(crate) after_crash: AfterCrash,
    pub(crate) retention: Duration,
    pub(crate) lease: Duration,
    pub(crate) retry_after: Duration,
    pub(crate) request_limit: usize,
    pub(crate) response_limit: usize,
    pub(crate) stream_after: Option<Duration>,
    /// Whether the key alone decides: the content is not compared.
    pub(crate) any_content: bool,
}

const MIB: usize = 1024 * 1024;
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
pub(crate) const UNRECONCILED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Policy {
    /// Creates a policy of true idempotency: a duplicate receives the first one's answer. This is the default.
    pub fn replay() -> Self {
        Self {
            on_duplicate: OnDuplicate::Replay,
            while_running: WhileRunning::Refuse,
            keep: Keep::Success,
            after_crash: AfterCrash::RunAgain,
            retention: DAY,
            lease: Duration::from_secs(30),
            retry_after: Duration::from_secs(1),
            request_limit: 2 * MIB,
            response_limit: 2 * MIB,
            stream_after: None,
            any_content: false,
        }
    }

    /// Creates an anti-resubmit policy: a duplicate is refused.
    pub fn reject() -> Self {
        Self::replay().on_duplicate(OnDuplicate::Reject)
    }

    /// Refuses a duplicate only while the first request runs, and remembers nothing afterwards: "do not submit twice at
    /// once".
    ///
    /// This keeps a handler from running twice at the same time for one key, such as an export or a synchronization. It
    /// does not make the operation idempotent: a retry after the first one's end runs again.
    ///
    /// ```
    /// use axum::{Router, routing::post};
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, key};
    ///
    /// let one_at_a_time = IdempotencyLayer::new(MemoryStore::new())
    ///     .unscoped()
    ///     .key(key::query("report"))
    ///     .policy(Policy::one_at_a_time());
    /// let app: Router = Router::new().route("/exports", post(|| async { "exported" }).layer(one_at_a_time));
    /// # drop(app);
    /// ```
    pub fn one_at_a_time() -> Self {
        Self::replay().keep(Keep::when(|_| false)).retention(Duration::from_millis(1))
    }

    /// Refuses every further request with the same key for `duration` after a success, whatever its content is: 409
    /// `duplicate-request`, with a `Retry-After` of what is left of the window.
    ///
    /// This is for a window by a field, such as one text message a minute to a phone number. A request that fails ends
    /// the window, so that it can be sent again. While the first one runs, another one receives a 409
    /// `request-in-progress`.
    ///
    /// It holds on every layer: a [`ConsumerLayer`](crate::ConsumerLayer) acknowledges a message with the same key
    /// during the window and does not handle it, and `Once` refuses it.
    ///
    /// The content is not compared, but the caller is: without a scope, another caller under the same key receives a
    /// 422 `other-caller`. For a window that all callers share, use [`unscoped`](crate::IdempotencyLayer::unscoped), as
    /// here:
    ///
    /// ```
    /// # #[cfg(feature = "json")] {
    /// use std::time::Duration;
    /// use axum::{Router, routing::post};
    /// use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, key};
    ///
    /// let once_a_minute = IdempotencyLayer::new(MemoryStore::new())
    ///     .unscoped()
    ///     .key(key::json("/phone"))
    ///     .policy(Policy::window(Duration::from_secs(60)));
    /// let app: Router = Router::new().route("/codes", post(|| async { "sent" }).layer(once_a_minute));
    /// # drop(app);
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if `duration` is less than a millisecond.
    #[track_caller]
    pub fn window(duration: Duration) -> Self {
        Self { any_content: true, ..Self::reject().retention(duration) }
    }

    /// Creates a policy of at most once: every answer is kept, failures and panics too, and a lapsed claim is never
    /// taken over.
    ///
    /// The record that a dead runner leaves behind stays until it is [reconciled](crate::Reconciler), for 30 days at
    /// least. Answers are kept for 30 days too: "at most once" holds for the retention, and after it the same key runs
    /// again.
    ///
    /// A runner that stood still past its lease, or lost its store, may find its record released, by a reconciler or by
    /// hand. So a handler checks [`Operation::is_lost`](crate::Operation::is_lost) right before its effect.
    pub fn at_most_once() -> Self {
        Self::replay().keep(Keep::Everything).after_crash(AfterCrash::Never).retention(UNRECONCILED)
    }

    /// Sets how a duplicate of an ended request is answered.
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        Self { on_duplicate, ..self }
    }

    /// Sets how a duplicate of a running request is answered.
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        Self { while_running, ..self }
    }

    /// Sets which answers are kept. The key of any other answer is released, so that the next try runs.
    pub fn keep(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// Sets what happens once the lease of a running request has lapsed.
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        Self { after_crash, ..self }
    }

    /// Sets how long an ended request answers duplicates, from its end. Default: 24 hours.
    ///
    /// It should be longer than clients go on retrying. After it, nothing remains of a key: a late retry runs again.
    /// State the retention in your documentation, or in each answer with
    /// [`expires_header`](crate::IdempotencyLayer::expires_header). An effect that must never happen twice needs a
    /// guard of its own, such as a unique number in the database.
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        assert!(retention >= Duration::from_millis(1), "a retention of {retention:?} remembers nothing");
        Self { retention, ..self }
    }

    /// Sets how long a running request keeps its key without a renewal. Default: 30 seconds.
    ///
    /// The lease is renewed three times within its length as long as the handler's task is polled, so it bounds how
    /// long a dead process holds a key, and not how long a handler may run. A process, or a store, that stands still
    /// for longer can be overtaken.
    ///
    /// After a crash, retries are refused (409 `request-in-progress`) until the lease has lapsed. Make it shorter if
    /// retries must not wait for so long and the runtime and the store are never held up for as long as that.
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        assert!(lease >= Duration::from_millis(1), "a lease of {lease:?} lapses at once");
        Self { lease, ..self }
    }

    /// Sets when a client that is refused for now should try again. Default: 1 second.
    ///
    /// It is sent as `Retry-After`, in whole seconds, rounded up and at least 1, but never more than what is left of
    /// the running request's lease. About as long as the handler takes is a good choice.
    pub fn retry_after(self, retry_after: Duration) -> Self {
        Self { retry_after, ..self }
    }

    /// Sets how long a request body may be, in bytes. Default: 2 MiB, as in Axum.
    pub fn request_limit(self, request_limit: usize) -> Self {
        Self { request_limit, ..self }
    }

    /// Sets how long an answer's body may be to be kept, in bytes. Default: 2 MiB, so that an answer that repeats its
    /// request is kept.
    ///
    /// A longer answer reaches its client, but a duplicate receives a 409 `response-not-retained`.
    pub fn response_limit(self, response_limit: usize) -> Self {
        Self { response_limit, ..self }
    }

    /// Sets how long an answer without a length is read before it is passed on as a stream. Default: until it ends.
    ///
    /// The layer reads an answer to its end, so that it can be kept, before the client receives any of it. This delays
    /// a handler that streams (`Body::from_stream`, newline-delimited JSON). With this setting, an answer that has
    /// neither a `Content-Length` nor a body of known length is recorded as not retained if it goes on for longer than
    /// `duration`. Then the client receives what was read so far, and the rest as it comes. A duplicate receives a 409
    /// `response-not-retained`. An answer that ends in time is kept as usual.
    ///
    /// A `text/event-stream`, and an answer for which the handler calls
    /// [`Operation::stream`](crate::Operation::stream), is passed on at once in any case.
    pub fn stream_after(self, duration: Duration) -> Self {
        Self { stream_after: Some(duration), ..self }
    }

    /// Returns how long the record of a running request outlives its last renewal.
    pub(crate) fn horizon(&self) -> Duration {
        let horizon = self.retention.max(self.lease.saturating_mul(10));
        match self.after_crash {
            AfterCrash::RunAgain => horizon,
            AfterCrash::Never => horizon.max(UNRECONCILED),
        }
    }

    /// Returns how long attempts are remembered after a failure, with its answer if there was one. A client's mistake
    /// (4xx) is corrected soon or never.
    pub(crate) fn released_for(&self, answer: Option<StatusCode>) -> Duration {
        match answer {
            Some(status) if status.is_client_error() => self.retention.min(HOUR),
            _ => self.retention,
        }
    }

    pub(crate) fn is_at_most_once(&self) -> bool {
        self.after_crash == AfterCrash::Never
    }

    /// Returns whether the outcome of a message or a function is kept. `is_final` states that the next try
    /// cannot change it.
    pub(crate) fn keeps_outcome(&self, wishes: HandlerDirectives, is_final: bool) -> bool {
        match wishes.retain {
            Some(retain) => retain != Retain::No,
            None => is_final || matches!(self.keep, Keep::Everything | Keep::EverythingBut(_)),
        }
    }

    /// Returns when to try again while another request runs that has this much left of its lease.
    pub(crate) fn pause(&self, left: Duration) -> Duration {
        self.retry_after.min(left).max(Duration::from_millis(1))
    }

    /// Returns how long a duplicate of a running request waits.
    pub(crate) fn patience(&self) -> Duration {
        match self.while_running {
            WhileRunning::Wait(patience) | WhileRunning::WaitThenRespond(patience, _) => patience,
            WhileRunning::Refuse | WhileRunning::Respond(_) => Duration::ZERO,
        }
    }

    /// Returns whether a panic is remembered like an answer.
    pub(crate) fn keeps_panics(&self) -> bool {
        self.is_at_most_once() || matches!(self.keep, Keep::Everything | Keep::EverythingBut(_))
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::replay()
    }
}

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
    /// answer with 500. A record of a [failure](crate::Payload::failed) without an answer is refused with
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
    /// use tower_idempotency::{Policy, Reply, WhileRunning};
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

/// What happens once the lease of a running request has lapsed, as after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AfterCrash {
    /// The next try of the same request runs, and sees that it is not the first.
    RunAgain,
    /// The request does not run again: a retry receives a 409 `outcome-unknown` until somebody finds out how the first
    /// one ended. The record is kept for 30 days, or for the [retention](Policy::retention) if that is longer; after
    /// that the same key runs again. Handlers check [`Operation::is_lost`](crate::Operation::is_lost) right before
    /// their effect.
    Never,
}

/// How an answer of the handler is kept, if the handler decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    /// Not kept: the next try runs.
    No,
    /// Kept for this long, whatever its status.
    For(Duration),
}

/// The handler's decisions about its own answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandlerDirectives {
    pub(crate) retain: Option<Retain>,
    pub(crate) stream: bool,
    /// Whether something outside may know of the operation.
    pub(crate) began: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizons() {
        let policy = Policy::replay().lease(Duration::from_secs(30)).retention(Duration::from_secs(2));
        assert_eq!(policy.horizon(), Duration::from_secs(300));
        assert_eq!(policy.released_for(None), Duration::from_secs(2));
        assert_eq!(Policy::replay().horizon(), DAY);
        assert_eq!(Policy::replay().released_for(Some(StatusCode::CONFLICT)), HOUR);
        assert_eq!(Policy::replay().released_for(Some(StatusCode::BAD_GATEWAY)), DAY);
        assert_eq!(Policy::at_most_once().horizon(), UNRECONCILED);
    }
}
