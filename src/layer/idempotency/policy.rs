//! The policy, as a whole and in parts.

use std::time::Duration;

use crate::{
    layer::IdempotencyLayer,
    value::{AfterCrash, Keep, OnDuplicate, Policy, WhileRunning},
};

impl IdempotencyLayer {
    /// Sets the whole policy: all four axes, times and limits.
    ///
    /// This replaces all earlier settings of the policy, such as a lease or a retention: call it first, and adjust the
    /// policy afterwards. If it replaces a setting that an earlier call made, a warning is emitted. On a clone there is
    /// no warning, since a route that adjusts a shared layer may want a policy of its own.
    #[track_caller]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.adjusted.replace();
        self.with(|exchange| exchange.policy = policy)
    }

    /// Sets how a duplicate of an ended request is answered; see [`Policy::on_duplicate`].
    #[track_caller]
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.adjust(|policy| policy.on_duplicate(on_duplicate))
    }

    /// Sets how a duplicate of a running request is answered; see [`Policy::while_running`].
    #[track_caller]
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Sets which answers are kept; see [`Policy::keep`].
    #[track_caller]
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// Sets what happens once a lease has lapsed; see [`Policy::after_crash`].
    #[track_caller]
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        self.adjust(|policy| policy.after_crash(after_crash))
    }

    /// Sets how long the record of an ended request answers duplicates; see [`Policy::retention`].
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        let policy = self.exchange.policy.clone().retention(retention);
        self.adjust(|_| policy)
    }

    /// Sets how long a running request keeps its key without a renewal; see [`Policy::lease`].
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        // Outside a closure, so that a panic is reported at the caller's line.
        let policy = self.exchange.policy.clone().lease(lease);
        self.adjust(|_| policy)
    }

    /// Sets when a client that is temporarily refused should retry; see [`Policy::retry_after`].
    #[track_caller]
    pub fn retry_after(self, retry_after: Duration) -> Self {
        self.adjust(|policy| policy.retry_after(retry_after))
    }

    /// Sets how long a request body may be, in bytes; see [`Policy::request_limit`].
    #[track_caller]
    pub fn request_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.request_limit(bytes))
    }

    /// Sets how long an answer's body may be, in bytes, for the answer to be kept; see [`Policy::response_limit`].
    #[track_caller]
    pub fn response_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.response_limit(bytes))
    }
}
