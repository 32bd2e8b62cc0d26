//! The setters that other builders have too.

use super::once::Once;
use crate::builder::{engine_setters, policy_setters};

/// The policy, as a whole and in parts.
impl Once {
    policy_setters! { RunPolicy =>
        /// With [`RunPolicy::window`](crate::RunPolicy::window) the [fingerprint](Self::fingerprint) is not compared.
        ///
        /// ```
        /// use std::time::Duration;
        /// use tower_idempotency::{MemoryStore, Once, RunPolicy};
        ///
        /// let payments = Once::new(MemoryStore::new(), "payments")
        ///     .lease(Duration::from_secs(10))
        ///     // With the lease of ten seconds.
        ///     .policy(RunPolicy::at_most_once());
        /// # drop(payments);
        /// ```
        policy,
        wait,
        /// An error that is kept is not run again, and duplicates are refused with `handler-failed`. To keep only some
        /// errors, see [`permanent_errors`](Self::permanent_errors).
        keep_errors,
        after_crash,
        retention,
        lease,
    }
}

/// The store and the work.
impl Once {
    engine_setters! {
        store_timeout,
        cancel_on_disconnect,
        background_tasks,
        secret,
        observer,
        /// Duplicates of a permanent error are refused with `handler-failed`.
        permanent_errors,
    }
}
