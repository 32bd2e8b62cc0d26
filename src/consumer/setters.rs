//! The setters that other builders have too.

use super::layer::ConsumerLayer;
use crate::builder::{engine_setters, policy_setters};

/// The policy, as a whole and in parts.
impl<M> ConsumerLayer<M> {
    policy_setters! { RunPolicy =>
        /// With [`RunPolicy::window`](crate::RunPolicy::window) the [fingerprint](Self::fingerprint) is not compared:
        /// every message with the same key in that time is acknowledged and not handled.
        ///
        /// ```
        /// use std::time::Duration;
        /// use tower_idempotency::{ConsumerLayer, MemoryStore, RunPolicy, fingerprint::Fingerprint};
        ///
        /// let key = |order: &String| order.clone();
        /// let payouts = ConsumerLayer::with_fingerprint(MemoryStore::new(), "payouts", key, |_| Fingerprint::OFF)
        ///     .lease(Duration::from_secs(10))
        ///     // With the lease of ten seconds.
        ///     .policy(RunPolicy::at_most_once());
        /// # drop(payouts);
        /// ```
        policy,
        /// A message that does not wait, or has waited for so long, is
        /// [`InProgress`](crate::consumer::Consumed::InProgress).
        wait,
        /// A message whose error is kept is [`FailedPermanently`](crate::consumer::Consumed::FailedPermanently). To
        /// keep only some errors, see [`permanent_errors`](Self::permanent_errors).
        keep_errors,
        after_crash,
        /// The time should be longer than the broker may deliver the message again, and longer than anyone may requeue
        /// it by hand.
        retention,
        lease,
    }
}

/// The store and the work.
impl<M> ConsumerLayer<M> {
    engine_setters! {
        store_timeout,
        cancel_on_disconnect,
        background_tasks,
        secret,
        observer,
        /// What runs without a claim has attempt number 1, and is not counted.
        switch,
        /// A message whose error is permanent is [`FailedPermanently`](crate::consumer::Consumed::FailedPermanently),
        /// and its duplicates are too.
        ///
        /// ```
        /// use tower_idempotency::{ConsumerLayer, MemoryStore, fingerprint::Fingerprint};
        ///
        /// enum PayoutError {
        ///     AccountClosed,
        ///     BankUnreachable,
        /// }
        ///
        /// let layer = ConsumerLayer::with_fingerprint(
        ///     MemoryStore::new(),
        ///     "payouts",
        ///     |number: &String| number.clone(),
        ///     |_| Fingerprint::OFF,
        /// )
        /// .permanent_errors(|error: &PayoutError| matches!(error, PayoutError::AccountClosed));
        /// # drop((layer, PayoutError::BankUnreachable));
        /// ```
        permanent_errors,
    }
}
