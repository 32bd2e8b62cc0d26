use std::time::Duration;

use super::{AfterCrash, OnDuplicate, RunPolicy, Setting, UNRECONCILED, WhileRunning, run::Mode};
use crate::value::Keep;

/// The treatment of repeated requests: four axes, with times and limits.
///
/// | axis | choices | default |
/// | --- | --- | --- |
/// | [`on_duplicate`](Self::on_duplicate) | replay, reject, respond, pass through | replay |
/// | [`while_running`](Self::while_running) | refuse, wait, respond, wait and then respond | refuse |
/// | [`keep`](Self::keep) | success, final answers, everything, a closure | success |
/// | [`after_crash`](Self::after_crash) | run again, never | run again |
///
/// # What a policy sets
///
/// A policy sets what its constructor and its setters say, and nothing else. A layer that takes it keeps the rest of its
/// settings; of two calls that set the same thing, the later one holds.
///
/// | constructor | sets |
/// | --- | --- |
/// | [`new`](Self::new) | nothing |
/// | [`replay`](Self::replay), [`reject`](Self::reject) | `on_duplicate` |
/// | [`at_most_once`](Self::at_most_once) | `keep`, `after_crash`, `retention` |
/// | [`window`](Self::window) | `on_duplicate`, `retention`, and that contents are not compared |
/// | [`one_at_a_time`](Self::one_at_a_time) | `while_running`, `keep`, `retention` |
///
/// The last two remember less than a layer does by default. So what they set ends with the next policy of another
/// constructor than `new`, and what was set before them holds again.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, WhileRunning};
///
/// let base = IdempotencyLayer::new(MemoryStore::new()).lease(Duration::from_secs(10));
/// // This route has the lease of the base.
/// let feedback = base.policy(Policy::reject().retention(Duration::from_secs(3)));
/// # drop(feedback);
///
/// // A duplicate of a running request waits for its answer.
/// let wait = Policy::replay().while_running(WhileRunning::Wait(Duration::from_secs(5)));
/// // The same content twice within three seconds is refused.
/// let no_double_clicks = Policy::reject().retention(Duration::from_secs(3));
/// # drop((wait, no_double_clicks));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a policy does nothing until a layer has it"]
pub struct Policy {
    /// Of this, `wait` and `keep_errors` follow from `while_running` and `keep`.
    pub(super) run: RunPolicy,
    pub(super) on_duplicate: Setting<OnDuplicate>,
    pub(super) while_running: Setting<WhileRunning>,
    pub(super) keep: Setting<Keep>,
    pub(super) retry_after: Setting<Duration>,
    pub(super) request_limit: Setting<usize>,
    pub(super) response_limit: Setting<usize>,
    pub(super) stream_after: Setting<Duration>,
}

impl Policy {
    /// Creates a policy that sets nothing: setters say what it sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a policy of true idempotency: a duplicate receives the first one's answer. This is the default of an
    /// [`IdempotencyLayer`](crate::IdempotencyLayer).
    pub fn replay() -> Self {
        Self::of(Mode::Plain).on_duplicate(OnDuplicate::Replay)
    }

    /// Creates an anti-resubmit policy: a duplicate is refused.
    pub fn reject() -> Self {
        Self::of(Mode::Plain).on_duplicate(OnDuplicate::Reject)
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
        RunPolicy::one_at_a_time().into()
    }

    /// Refuses every further request with the same key for `duration` after a success, whatever its content is: 409
    /// `duplicate-request`, with a `Retry-After` of what is left of the window.
    ///
    /// This is for a window by a field, such as one text message a minute to a phone number. A request that fails ends
    /// the window, so that it can be sent again. While the first one runs, another one receives a 409
    /// `request-in-progress`.
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
        RunPolicy::window(duration).into()
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
        Self::of(Mode::Plain).keep(Keep::EVERYTHING).after_crash(AfterCrash::Never).retention(UNRECONCILED)
    }

    fn of(mode: Mode) -> Self {
        Self { run: RunPolicy::of(mode), ..Self::default() }
    }

    /// Sets how a duplicate of an ended request is answered. Default: with the first one's answer.
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        Self { on_duplicate: Setting::set(on_duplicate), ..self }
    }

    /// Sets how a duplicate of a running request is answered. Default: it is refused.
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        Self { while_running: Setting::set(while_running), ..self }
    }

    /// Sets which answers are kept. The key of any other answer is released, so that the next try runs. Default:
    /// [`Keep::SUCCESS`].
    pub fn keep(self, keep: Keep) -> Self {
        Self { keep: Setting::set(keep), ..self }
    }

    /// Sets what happens once the lease of a running request has lapsed. Default: the next try runs.
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        Self { run: self.run.after_crash(after_crash), ..self }
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
        Self { run: self.run.retention(retention), ..self }
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
        Self { run: self.run.lease(lease), ..self }
    }

    /// Sets when a client that is refused for now should try again. Default: 1 second.
    ///
    /// It is sent as `Retry-After`, in whole seconds, rounded up and at least 1, but never more than what is left of
    /// the running request's lease. About as long as the handler takes is a good choice.
    pub fn retry_after(self, retry_after: Duration) -> Self {
        Self { retry_after: Setting::set(retry_after), ..self }
    }

    /// Sets how long a request body may be, in bytes. Default: 2 MiB, as in Axum.
    pub fn request_limit(self, request_limit: usize) -> Self {
        Self { request_limit: Setting::set(request_limit), ..self }
    }

    /// Sets how long an answer's body may be to be kept, in bytes. Default: 2 MiB, so that an answer that repeats its
    /// request is kept.
    ///
    /// A longer answer reaches its client, but a duplicate receives a 409 `response-not-retained`.
    pub fn response_limit(self, response_limit: usize) -> Self {
        Self { response_limit: Setting::set(response_limit), ..self }
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
        Self { stream_after: Setting::set(duration), ..self }
    }
}
