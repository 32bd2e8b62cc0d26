//! The policy, as a whole and by its parts.

use std::time::Duration;

use super::IdempotencyLayer;
use crate::value::{AfterCrash, Keep, OnDuplicate, Policy, WhileRunning};

impl IdempotencyLayer {
    /// All four axes at once, with times and limits.
    ///
    /// It replaces what was set before, a lease or a retention too: call it first, and adjust it afterwards. A call that
    /// replaces what a call before it has set is a warning. One on a clone is not, since a route that adjusts a shared layer
    /// may well want a policy of its own.
    #[track_caller]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.adjusted.replace();
        self.with(|exchange| exchange.policy = policy)
    }

    /// What a duplicate of an ended request gets; see [`Policy::on_duplicate`].
    #[track_caller]
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.adjust(|policy| policy.on_duplicate(on_duplicate))
    }

    /// What a duplicate of a running request gets; see [`Policy::while_running`].
    #[track_caller]
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Which answers are kept; see [`Policy::keep`].
    #[track_caller]
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// What happens once a lease has lapsed; see [`Policy::after_crash`].
    #[track_caller]
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        self.adjust(|policy| policy.after_crash(after_crash))
    }

    /// How long an ended request answers duplicates; see [`Policy::retention`].
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        let policy = self.exchange.policy.clone().retention(retention);
        self.adjust(|_| policy)
    }

    /// How long a running request keeps its key without a sign of life; see [`Policy::lease`].
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        // Outside of a closure, so that a panic is its caller's.
        let policy = self.exchange.policy.clone().lease(lease);
        self.adjust(|_| policy)
    }

    /// When a client that is refused for now should come again; see [`Policy::retry_after`].
    #[track_caller]
    pub fn retry_after(self, retry_after: Duration) -> Self {
        self.adjust(|policy| policy.retry_after(retry_after))
    }

    /// How long a request body may be; see [`Policy::request_limit`].
    #[track_caller]
    pub fn request_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.request_limit(bytes))
    }

    /// How long an answer's body may be to be kept; see [`Policy::response_limit`].
    #[track_caller]
    pub fn response_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.response_limit(bytes))
    }
}
