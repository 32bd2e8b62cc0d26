use std::time::Duration;

use tower_idempotency::{
    BackgroundTasks, IdempotencyLayer, Observer, Policy, Secret, fingerprint::IntoFingerprintExtractor,
    key::IntoKeyExtractor, scope::IntoScopeExtractor,
};

use super::GrpcLayer;

/// What calls have in common with requests of HTTP.
impl GrpcLayer {
    /// Sets the source of the key. Default: [`key::metadata("idempotency-key")`](crate::key::metadata).
    pub fn key(self, key: impl IntoKeyExtractor) -> Self {
        self.configure(|core| core.key(key))
    }

    /// Lets a call without a key through unprotected, instead of refusing it.
    pub fn key_optional(self) -> Self {
        self.configure(IdempotencyLayer::key_optional)
    }

    /// Sets whom a key belongs to: a user, a tenant, a merchant. Default: no scope, and a caller has to send the
    /// credentials of its first try again.
    ///
    /// See [`scope`](crate::scope), and [`tower_idempotency::scope::extension`] for what the authentication has found.
    pub fn scope(self, scope: impl IntoScopeExtractor) -> Self {
        self.configure(|core| core.scope(scope))
    }

    /// Treats all callers as one: anyone who knows a key can get its answer.
    pub fn unscoped(self) -> Self {
        self.configure(IdempotencyLayer::unscoped)
    }

    /// Sets what counts as the same call. Default: the bytes of the message, decompressed.
    pub fn fingerprint(self, fingerprint: impl IntoFingerprintExtractor) -> Self {
        self.configure(|core| core.fingerprint(fingerprint))
    }

    /// Applies a policy: what happens to duplicates, what is kept and for how long. Limits are those of
    /// [`request_limit`](Self::request_limit) and [`response_limit`](Self::response_limit).
    pub fn policy(self, policy: Policy) -> Self {
        self.configure(|core| core.policy(policy))
    }

    /// Sets how long an ended call answers duplicates, from its end. Default: 24 hours.
    ///
    /// # Panics
    ///
    /// Panics if `retention` is less than a millisecond.
    #[track_caller]
    pub fn retention(self, retention: Duration) -> Self {
        self.configure(|core| core.retention(retention))
    }

    /// Sets how long a running call keeps its key without a renewal. Default: 30 seconds.
    ///
    /// # Panics
    ///
    /// Panics if `lease` is less than a millisecond.
    #[track_caller]
    pub fn lease(self, lease: Duration) -> Self {
        self.configure(|core| core.lease(lease))
    }

    /// Lets a call through unprotected if the store is unavailable, instead of refusing it.
    pub fn fail_open(self) -> Self {
        self.configure(IdempotencyLayer::fail_open)
    }

    /// Counts and bounds the work of clients that have left, together with all layers that share `tasks`, and lets a
    /// shutdown wait for it.
    pub fn background_tasks(self, tasks: BackgroundTasks) -> Self {
        self.configure(|core| core.background_tasks(tasks))
    }

    /// Sets the secret with which digests of callers and contents are keyed.
    pub fn secret(self, secret: Secret) -> Self {
        self.configure(|core| core.secret(secret))
    }

    /// Adds an observer, which receives the [events](tower_idempotency::Event).
    pub fn observer(self, observer: impl Observer) -> Self {
        self.configure(|core| core.observer(observer))
    }
}
