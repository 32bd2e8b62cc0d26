use std::time::Duration;

use http::StatusCode;

use super::{Keep, Reply};

/// What happens to a repeated request: four axes, with times and limits.
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
    /// The key alone decides: the content is not compared.
    pub(crate) any_content: bool,
}

const MIB: usize = 1024 * 1024;
const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
pub(crate) const UNRECONCILED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

impl Policy {
    /// True idempotency: a duplicate gets the first one's answer. This is the default.
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

    /// Anti-resubmit: a duplicate is refused.
    pub fn reject() -> Self {
        Self::replay().on_duplicate(OnDuplicate::Reject)
    }

    /// Refuses a duplicate only while the first request runs, and remembers nothing afterwards: "do not submit twice at once".
    ///
    /// This protects a handler from running beside itself for one key, such as an export or a synchronization. It is no
    /// idempotency: a retry after the first one's end runs again.
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
    /// This is for a window by a field, such as one text message a minute to a phone number. A request that fails ends the
    /// window, so that it can be sent again. While the first one runs, another one receives a 409 `request-in-progress`.
    ///
    /// It holds on every layer: a [`ConsumerLayer`](crate::ConsumerLayer) acknowledges whatever comes with the same key
    /// meanwhile and does not handle it, and `Once` refuses it.
    ///
    /// The content is not compared, but the caller is: without a scope, another caller under the same key receives a 422
    /// `other-caller`. For a window that all callers share, say so with
    /// [`unscoped`](crate::IdempotencyLayer::unscoped), as here:
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

    /// At most once: every answer is kept, failures and panics too, and a lapsed claim is never taken over.
    ///
    /// What a dead runner leaves behind stays until it is [reconciled](crate::Reconciler), for 30 days at least. Answers are
    /// kept for 30 days too: "at most once" holds for the retention, and after it the same key runs again.
    ///
    /// A runner that stood still past its lease, or lost its store, may find its record released, by a reconciler or by
    /// hand. So a handler asks [`Operation::is_lost`](crate::Operation::is_lost) right before its effect.
    pub fn at_most_once() -> Self {
        Self::replay().keep(Keep::Everything).after_crash(AfterCrash::Never).retention(UNRECONCILED)
    }

    /// What a duplicate of an ended request gets.
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        Self { on_duplicate, ..self }
    }

    /// What a duplicate of a running request gets.
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        Self { while_running, ..self }
    }

    /// Which answers are kept. The key of any other answer is released, so that the next try runs.
    pub fn keep(self, keep: Keep) -> Self {
        Self { keep, ..self }
    }

    /// What happens once the lease of a running request has lapsed.
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        Self { after_crash, ..self }
    }

    /// How long an ended request answers duplicates, from its end. Default: 24 hours.
    ///
    /// It should be longer than clients go on retrying. After it, a key is new without a trace: a late retry runs again. Say
    /// in your documentation how long it is, or on the wire with
    /// [`expires_header`](crate::IdempotencyLayer::expires_header); and guard what must never happen twice where it happens,
    /// such as with a unique number in the database.
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        assert!(retention >= Duration::from_millis(1), "a retention of {retention:?} remembers nothing");
        Self { retention, ..self }
    }

    /// How long a running request keeps its key without a sign of life. Default: 30 seconds.
    ///
    /// The lease is renewed three times within its length as long as the handler's task is polled, so it bounds how
    /// long a dead process holds a key, and not how long a handler may run. A process, or a store, that stands still
    /// for longer can be overtaken.
    ///
    /// After a crash, retries are refused (409 `request-in-progress`) until the lease has lapsed. Make it shorter if they must
    /// not have to wait for so long, and the runtime and the store are never held up for as long as that.
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        assert!(lease >= Duration::from_millis(1), "a lease of {lease:?} lapses at once");
        Self { lease, ..self }
    }

    /// When a client that is refused for now should come again. Default: 1 second.
    ///
    /// It is sent as `Retry-After`, in whole seconds, rounded up and at least 1; and never as more than what is left of the
    /// running request's lease. About as long as the handler takes is a good choice.
    pub fn retry_after(self, retry_after: Duration) -> Self {
        Self { retry_after, ..self }
    }

    /// How long a request body may be, in bytes. Default: 2 MiB, as Axum has it.
    pub fn request_limit(self, request_limit: usize) -> Self {
        Self { request_limit, ..self }
    }

    /// How long an answer's body may be to be kept, in bytes. Default: 2 MiB, so that an answer that repeats its request is
    /// kept.
    ///
    /// A longer one reaches its client; a duplicate hears that it was not retained.
    pub fn response_limit(self, response_limit: usize) -> Self {
        Self { response_limit, ..self }
    }

    /// How long an answer without a length is read before it is passed on as a stream. Default: until it ends.
    ///
    /// The layer reads an answer to its end, so that it can be kept, before its client gets any of it. A handler that
    /// streams (`Body::from_stream`, newline-delimited JSON) is thereby held up. With this, an answer that has neither a
    /// `Content-Length` nor a body of known length, and that goes on for longer than `duration`, is recorded as not
    /// retained; then what was read so far goes to the client, and the rest as it comes. A duplicate receives a 409
    /// `response-not-retained`. Whatever ends in time is kept as usual.
    ///
    /// A `text/event-stream`, and an answer for which the handler calls [`Operation::stream`](crate::Operation::stream),
    /// is passed on at once in any case.
    pub fn stream_after(self, duration: Duration) -> Self {
        Self { stream_after: Some(duration), ..self }
    }

    /// How long the record of a running request outlives its last renewal.
    pub(crate) fn horizon(&self) -> Duration {
        let horizon = self.retention.max(self.lease.saturating_mul(10));
        match self.after_crash {
            AfterCrash::RunAgain => horizon,
            AfterCrash::Never => horizon.max(UNRECONCILED),
        }
    }

    /// How long attempts are remembered after a failure: its answer, if there was one. A client's mistake (4xx) is corrected
    /// soon or never.
    pub(crate) fn released_for(&self, answer: Option<StatusCode>) -> Duration {
        match answer {
            Some(status) if status.is_client_error() => self.retention.min(HOUR),
            _ => self.retention,
        }
    }

    pub(crate) fn is_at_most_once(&self) -> bool {
        self.after_crash == AfterCrash::Never
    }

    /// Whether the outcome of something that is no HTTP request is kept. `is_final` says that the next try cannot change
    /// it.
    pub(crate) fn keeps_outcome(&self, wishes: HandlerDirectives, is_final: bool) -> bool {
        match wishes.retain {
            Some(retain) => retain != Retain::No,
            None => is_final || matches!(self.keep, Keep::Everything | Keep::EverythingBut(_)),
        }
    }

    /// When to come again while another runs that has this much left of its lease.
    pub(crate) fn pause(&self, left: Duration) -> Duration {
        self.retry_after.min(left).max(Duration::from_millis(1))
    }

    /// How long a duplicate of a running request waits.
    pub(crate) fn patience(&self) -> Duration {
        match self.while_running {
            WhileRunning::Wait(patience) | WhileRunning::WaitThenRespond(patience, _) => patience,
            WhileRunning::Refuse | WhileRunning::Respond(_) => Duration::ZERO,
        }
    }

    /// Whether a panic is remembered like an answer.
    pub(crate) fn keeps_panics(&self) -> bool {
        self.is_at_most_once() || matches!(self.keep, Keep::Everything | Keep::EverythingBut(_))
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::replay()
    }
}

/// What a duplicate of an ended request gets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum OnDuplicate {
    /// The first one's answer, marked as a replay.
    Replay,
    /// 409 `duplicate-request`.
    Reject,
    /// An answer of one's own, in place of a kept success.
    ///
    /// A kept failure (4xx or 5xx) is replayed as it was: whoever reads the answer as a word of success must not receive
    /// it for something that failed. Nor does it answer for a record whose content cannot be read (409
    /// `response-not-retained`), or that says that the request failed (500 `handler-failed`).
    Respond(Reply),
    /// The duplicate reaches the handler, which finds in its [`Operation`](crate::Operation) that it
    /// [is one](crate::Operation::is_duplicate), with [what was kept](crate::Operation::kept).
    ///
    /// This is for answers that have to be derived from today's state. Nothing is claimed or recorded for the duplicate,
    /// so several of them run at the same time: the handler must only read. In transaction mode there is no transaction for
    /// it: the handler looks at its `Operation` before it takes one, since the extractor `Tx` would answer with 500. What is
    /// recorded as [failed](crate::Payload::failed) without an answer is refused with `handler-failed`. A request that loses
    /// its claim while its handler runs gets the answer that is kept instead of its own.
    PassThrough,
}

/// What a duplicate of a running request gets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum WhileRunning {
    /// 409 `request-in-progress` with `Retry-After`.
    Refuse,
    /// It waits for this long at most, then for what a duplicate of an ended request gets. If the first one fails,
    /// exactly one of those that wait runs next.
    Wait(Duration),
    /// An answer of one's own, which gets a `Retry-After` if it has none.
    Respond(Reply),
    /// It waits as with [`Wait`](Self::Wait). If the first one still runs then, it gets an answer of one's own, with a
    /// `Retry-After` if it has none.
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
    /// The next try of the same request runs, and is told that it is not the first.
    RunAgain,
    /// It does not run again: 409 `outcome-unknown` until somebody finds out how it ended. The record is kept for 30 days, or
    /// for the [retention](Policy::retention) if that is longer; after that the same key runs again.
    /// Handlers ask [`Operation::is_lost`](crate::Operation::is_lost) right before their effect.
    Never,
}

/// How an answer of the handler's is kept, if the handler says so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retain {
    /// It is not kept: the next try runs.
    No,
    /// It is kept for this long, whatever its status.
    For(Duration),
}

/// What a handler wants done with its own answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HandlerDirectives {
    pub(crate) retain: Option<Retain>,
    pub(crate) stream: bool,
    /// Something outside may know of the operation.
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
