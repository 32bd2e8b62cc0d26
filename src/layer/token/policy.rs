//! The policy, as a whole and in parts.

use std::time::Duration;

use crate::{
    layer::TokenLayer,
    value::{AfterCrash, Keep, OnDuplicate, Policy, WhileRunning},
};

impl TokenLayer {
    /// Sets the whole policy: all four axes, times and limits. Default: [`Policy::reject`].
    ///
    /// This replaces all earlier settings of the policy, such as a lease or a retention: call it first, and adjust the
    /// policy afterwards.
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|exchange| exchange.policy = policy).comparing()
    }

    /// Sets how a request with a used token is answered. Default: 409 `token-used`.
    ///
    /// With [`Replay`](OnDuplicate::Replay) the request receives the first answer, and with
    /// [`Respond`](OnDuplicate::Respond) an answer of your own. With [`PassThrough`](OnDuplicate::PassThrough) it
    /// reaches the handler, which finds in its [`Operation`](crate::Operation) that the request is a duplicate. Each of
    /// these applies only if the request asks for the same as the first: a form that a browser restored must not be
    /// answered with another order's success. The same token with other content receives 422 `key-reused`, so the body
    /// is read before the token is claimed. [`fingerprint`](Self::fingerprint) defines what counts as the same.
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.adjust(|policy| policy.on_duplicate(on_duplicate)).comparing()
    }

    /// Sets how a request with a token in use is answered; see [`Policy::while_running`].
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Sets which answers spend the token. Default: 2xx and 3xx; any other answer releases the token, which keeps its
    /// first expiry.
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// Sets what happens once the lease of a token in use has lapsed; see [`Policy::after_crash`].
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        self.adjust(|policy| policy.after_crash(after_crash))
    }

    /// Sets how long a used token is known as used. Default: 24 hours; after that the token is unknown, and is still
    /// not accepted.
    ///
    /// A signed token is known as used for as long as it would have been valid, whatever this setting is: see
    /// [`Tokens::signed`][signed].
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    ///
    #[cfg_attr(feature = "signed-tokens", doc = "[signed]: crate::token::Tokens::signed")]
    #[cfg_attr(
        not(feature = "signed-tokens"),
        doc = "[signed]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Tokens.html#method.signed"
    )]
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        let policy = self.exchange.policy.clone().retention(retention);
        self.adjust(|_| policy)
    }

    /// Sets how long a token stays in use without a renewal; see [`Policy::lease`].
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
    pub fn retry_after(self, retry_after: Duration) -> Self {
        self.adjust(|policy| policy.retry_after(retry_after))
    }

    /// Sets how long a request body may be, in bytes, if it is read before the handler receives it; see
    /// [`Policy::request_limit`].
    pub fn request_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.request_limit(bytes))
    }

    /// Sets how long an answer's body may be, in bytes, for the answer to be kept; see [`Policy::response_limit`].
    pub fn response_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.response_limit(bytes))
    }

    /// Sets how long an answer without a length is read before it is passed on as a stream; see
    /// [`Policy::stream_after`].
    pub fn stream_after(self, duration: Duration) -> Self {
        self.adjust(|policy| policy.stream_after(duration))
    }
}
