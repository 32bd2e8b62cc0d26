use std::time::Duration;

use super::{AfterCrash, DAY, MILLISECOND, Resolve, Retain, Setting, UNRECONCILED, directives::HandlerDirectives};

/// The treatment of repeated messages and functions: what a [`ConsumerLayer`](crate::ConsumerLayer) and
#[cfg_attr(feature = "json", doc = "[`Once`](crate::Once) follow. A [`Policy`](crate::Policy) adds what is HTTP's.")]
#[cfg_attr(not(feature = "json"), doc = "`Once` follow. A [`Policy`](crate::Policy) adds what is HTTP's.")]
///
/// | setting | default |
/// | --- | --- |
/// | [`retention`](Self::retention) | 24 hours |
/// | [`lease`](Self::lease) | 30 seconds |
/// | [`after_crash`](Self::after_crash) | the next try runs |
/// | [`wait`](Self::wait) | a duplicate of a running operation does not wait |
/// | [`keep_errors`](Self::keep_errors) | an error is not kept, and the next try runs |
///
/// A policy sets what its constructor and its setters say, and nothing else. Layers of requests take it too.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{ConsumerLayer, IdempotencyLayer, MemoryStore, RunPolicy, fingerprint::Fingerprint};
///
/// // One configuration for requests and messages.
/// let policy = RunPolicy::at_most_once().lease(Duration::from_secs(10));
///
/// let store = MemoryStore::new();
/// let payments = IdempotencyLayer::new(store.clone()).policy(policy.clone());
/// let key = |order: &String| order.clone();
/// let payouts = ConsumerLayer::with_fingerprint(store, "payouts", key, |_| Fingerprint::OFF).policy(policy);
/// # drop((payments, payouts));
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a policy does nothing until it is applied"]
pub struct RunPolicy {
    /// What the constructor makes of it.
    pub(super) mode: Option<Mode>,
    pub(super) retention: Setting<Duration>,
    pub(super) lease: Setting<Duration>,
    pub(super) after_crash: Setting<AfterCrash>,
    pub(super) wait: Setting<Duration>,
    pub(super) keep_errors: Setting<bool>,
    /// Whether the key alone decides: the content is not compared, and a duplicate is refused.
    pub(super) any_content: Setting<bool>,
}

/// Which constructor a policy began with. Each ends what an earlier one of `Window` and `OneAtATime` set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Window,
    OneAtATime,
}

/// The plain values of a [`RunPolicy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunSettings {
    pub(crate) retention: Duration,
    pub(crate) lease: Duration,
    pub(crate) after_crash: AfterCrash,
    /// How long a duplicate of a running operation waits.
    pub(crate) wait: Duration,
    pub(crate) keep_errors: bool,
    pub(crate) any_content: bool,
}

impl RunPolicy {
    /// Creates a policy that sets nothing: setters say what it sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a policy of at most once: errors and panics are kept too, and a lapsed claim is never taken over. It
    /// sets [`keep_errors`](Self::keep_errors), [`after_crash`](Self::after_crash) and
    /// [`retention`](Self::retention).
    ///
    /// The record that a dead runner leaves behind stays until it is [reconciled](crate::Reconciler), for 30 days at
    /// least. Outcomes are kept for 30 days too: "at most once" holds for the retention, and after it the same key runs
    /// again.
    ///
    /// A runner that stood still past its lease, or lost its store, may find its record released, by a reconciler or by
    /// hand. So check [`Operation::is_lost`](crate::Operation::is_lost) right before the effect.
    pub fn at_most_once() -> Self {
        Self::of(Mode::Plain).keep_errors(true).after_crash(AfterCrash::Never).retention(UNRECONCILED)
    }

    /// Creates a policy of a window: after a success, nothing else runs under the same key for `duration`, whatever its
    /// content is. It sets [`retention`](Self::retention), and that contents are not compared.
    ///
    /// During the window, a message with the same key is acknowledged and not handled, and a function is refused
    /// (`duplicate-request`). A failure ends the window, so that the next try runs.
    ///
    /// ```
    /// # #[cfg(feature = "json")] {
    /// use std::time::Duration;
    /// use tower_idempotency::{MemoryStore, Once, RunPolicy};
    ///
    /// // One message a minute to each number.
    /// let codes = Once::new(MemoryStore::new(), "codes").policy(RunPolicy::window(Duration::from_secs(60)));
    /// # drop(codes);
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Panics if `duration` is less than a millisecond.
    #[track_caller]
    pub fn window(duration: Duration) -> Self {
        let retention = Setting::by_mode(checked_retention(duration));
        Self { retention, any_content: Setting::by_mode(true), ..Self::of(Mode::Window) }
    }

    /// Creates a policy under which operations with the same key run one after the other: a duplicate is refused while
    /// the first one runs, and runs itself afterwards. It sets [`retention`](Self::retention) and [`wait`](Self::wait).
    ///
    /// This is less than idempotency: nothing is remembered.
    pub fn one_at_a_time() -> Self {
        let retention = Setting::by_mode(MILLISECOND);
        Self { retention, wait: Setting::by_mode(Duration::ZERO), ..Self::of(Mode::OneAtATime) }
    }

    pub(super) fn of(mode: Mode) -> Self {
        Self { mode: Some(mode), ..Self::default() }
    }

    /// Sets how long the record of an ended operation answers duplicates, from its end. Default: 24 hours.
    ///
    /// It should be longer than anybody goes on retrying. After it, nothing remains of a key: a late retry runs again.
    /// An effect that must never happen twice needs a guard of its own, such as a unique number in the database.
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        Self { retention: Setting::set(checked_retention(retention)), ..self }
    }

    /// Sets how long a running operation keeps its key without a renewal. Default: 30 seconds.
    ///
    /// The lease is renewed three times within its length as long as the operation's task is polled, so it bounds how
    /// long a dead process holds a key, and not how long an operation may run. A process, or a store, that stands still
    /// for longer can be overtaken.
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        assert!(lease >= MILLISECOND, "a lease of {lease:?} lapses at once");
        Self { lease: Setting::set(lease), ..self }
    }

    /// Sets what happens once the lease of a running operation has lapsed. Default: the next try runs.
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        Self { after_crash: Setting::set(after_crash), ..self }
    }

    /// Sets how long a duplicate of a running operation waits for its end. Default: not at all, so it is refused.
    ///
    /// If the first one fails, exactly one of those that wait runs next.
    pub fn wait(self, duration: Duration) -> Self {
        Self { wait: Setting::set(duration), ..self }
    }

    /// Sets whether errors and panics are kept: an error that is kept is permanent. Default: `false`, so that the next
    /// try runs.
    pub fn keep_errors(self, keep_errors: bool) -> Self {
        Self { keep_errors: Setting::set(keep_errors), ..self }
    }
}

#[track_caller]
fn checked_retention(retention: Duration) -> Duration {
    assert!(retention >= MILLISECOND, "a retention of {retention:?} remembers nothing");
    retention
}

impl Resolve for RunPolicy {
    type Values = RunSettings;

    fn merge(&mut self, later: Self) {
        let mode = later.mode.is_some();
        self.mode = later.mode.or(self.mode);
        self.retention.merge(later.retention, mode);
        self.lease.merge(later.lease, mode);
        self.after_crash.merge(later.after_crash, mode);
        self.wait.merge(later.wait, mode);
        self.keep_errors.merge(later.keep_errors, mode);
        self.any_content.merge(later.any_content, mode);
    }

    fn resolve(&self) -> RunSettings {
        RunSettings {
            retention: self.retention.or(DAY),
            lease: self.lease.or(Duration::from_secs(30)),
            after_crash: self.after_crash.or(AfterCrash::RunAgain),
            wait: self.wait.or(Duration::ZERO),
            keep_errors: self.keep_errors.or(false),
            any_content: self.any_content.or(false),
        }
    }
}

impl RunSettings {
    /// Returns how long the record of a running operation outlives its last renewal.
    pub(crate) fn horizon(&self) -> Duration {
        let horizon = self.retention.max(self.lease.saturating_mul(10));
        if self.is_at_most_once() { horizon.max(UNRECONCILED) } else { horizon }
    }

    pub(crate) fn is_at_most_once(&self) -> bool {
        self.after_crash == AfterCrash::Never
    }

    /// Returns whether the outcome of a message or a function is kept. `is_final` states that the next try
    /// cannot change it.
    pub(crate) fn keeps_outcome(&self, wishes: HandlerDirectives, is_final: bool) -> bool {
        match wishes.retain {
            Some(retain) => retain != Retain::No,
            None => is_final || self.keep_errors,
        }
    }

    /// Returns whether a panic is remembered like an answer.
    pub(crate) fn keeps_panics(&self) -> bool {
        self.is_at_most_once() || self.keep_errors
    }
}
