//! The policy, as a whole and by its parts.

use std::time::Duration;

use super::TokenLayer;
use crate::value::{AfterCrash, Keep, OnDuplicate, Policy, WhileRunning};

impl TokenLayer {
    /// All four axes at once, with times and limits. Default: [`Policy::reject`].
    ///
    /// It replaces what was set before, a lease or a retention too: call it first, and adjust it afterwards.
    pub fn policy(self, policy: Policy) -> Self {
        self.with(|exchange| exchange.policy = policy).comparing()
    }

    /// What a request with a used token gets. Default: 409 `token-used`.
    ///
    /// With [`Replay`](OnDuplicate::Replay) it gets the first answer, with [`Respond`](OnDuplicate::Respond) an answer of
    /// one's own, and with [`PassThrough`](OnDuplicate::PassThrough) it reaches the handler, which finds in its
    /// [`Operation`](crate::Operation) that it is a duplicate. Each of them if it asks for the same as the first: a form that
    /// a browser brought back must not be answered with another order's success. The same token with other content receives
    /// 422 `key-reused`, so the body is read before the token is claimed. What counts as the same is told by
    /// [`fingerprint`](Self::fingerprint).
    pub fn on_duplicate(self, on_duplicate: OnDuplicate) -> Self {
        self.adjust(|policy| policy.on_duplicate(on_duplicate)).comparing()
    }

    /// What a request with a token in use gets; see [`Policy::while_running`].
    pub fn while_running(self, while_running: WhileRunning) -> Self {
        self.adjust(|policy| policy.while_running(while_running))
    }

    /// Which answers spend the token. Default: 2xx and 3xx; any other gives it back, with its first expiry.
    pub fn keep(self, keep: Keep) -> Self {
        self.adjust(|policy| policy.keep(keep))
    }

    /// What happens once the lease of a token in use has lapsed; see [`Policy::after_crash`].
    pub fn after_crash(self, after_crash: AfterCrash) -> Self {
        self.adjust(|policy| policy.after_crash(after_crash))
    }

    /// How long a used token is known as used. Default: 24 hours; after that it is unknown, and as little good.
    ///
    /// A signed token is known as used for as long as it would have been good, whatever this says: see
    /// [`Tokens::signed`][signed].
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    ///
    #[cfg_attr(feature = "signed-tokens", doc = "[signed]: super::Tokens::signed")]
    #[cfg_attr(
        not(feature = "signed-tokens"),
        doc = "[signed]: https://docs.rs/tower-idempotency/latest/tower_idempotency/struct.Tokens.html#method.signed"
    )]
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        let policy = self.exchange.policy.clone().retention(retention);
        self.adjust(|_| policy)
    }

    /// How long a token in use stays so without a sign of life; see [`Policy::lease`].
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
    pub fn retry_after(self, retry_after: Duration) -> Self {
        self.adjust(|policy| policy.retry_after(retry_after))
    }

    /// How long a request body may be, if it is read before the handler gets it; see [`Policy::request_limit`].
    pub fn request_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.request_limit(bytes))
    }

    /// How long an answer's body may be to be kept; see [`Policy::response_limit`].
    pub fn response_limit(self, bytes: usize) -> Self {
        self.adjust(|policy| policy.response_limit(bytes))
    }

    /// How long an answer without a length is read before it is passed on as a stream; see [`Policy::stream_after`].
    pub fn stream_after(self, duration: Duration) -> Self {
        self.adjust(|policy| policy.stream_after(duration))
    }
}
