//! Setters of a policy. Each is a call of `policy`, so that the last setting holds, whichever call made it.

macro_rules! policy_setters {
    ($policy:ident => $($(#[$more:meta])* $name:ident),* $(,)?) => {
        $($crate::builder::policy_setter! { $name($policy) $(#[$more])* })*
    };
}

macro_rules! policy_setter {
    (policy($policy:ident) $(#[$more:meta])*) => {
        /// Applies the settings of a policy.
        ///
        /// What `policy` does not set stays as it is. Of two calls that set the same thing, the later one holds,
        /// whether it is this one or a setter.
        ///
        $(#[$more])*
        pub fn policy(self, policy: impl Into<$crate::value::$policy>) -> Self {
            self.apply(policy.into())
        }
    };
    (on_duplicate($policy:ident) $(#[$more:meta])*) => {
        /// Sets how a duplicate of an ended request is answered; see
        /// [`Policy::on_duplicate`](crate::Policy::on_duplicate).
        ///
        $(#[$more])*
        pub fn on_duplicate(self, on_duplicate: $crate::value::OnDuplicate) -> Self {
            self.policy($crate::value::$policy::new().on_duplicate(on_duplicate))
        }
    };
    (while_running($policy:ident) $(#[$more:meta])*) => {
        /// Sets how a duplicate of a running request is answered; see
        /// [`Policy::while_running`](crate::Policy::while_running).
        ///
        $(#[$more])*
        pub fn while_running(self, while_running: $crate::value::WhileRunning) -> Self {
            self.policy($crate::value::$policy::new().while_running(while_running))
        }
    };
    (wait($policy:ident) $(#[$more:meta])*) => {
        /// Sets how long a duplicate of a running operation waits for its end; see
        /// [`RunPolicy::wait`](crate::RunPolicy::wait).
        ///
        $(#[$more])*
        pub fn wait(self, duration: ::std::time::Duration) -> Self {
            self.policy($crate::value::$policy::new().wait(duration))
        }
    };
    (keep($policy:ident) $(#[$more:meta])*) => {
        /// Sets which answers are kept; see [`Policy::keep`](crate::Policy::keep).
        ///
        $(#[$more])*
        pub fn keep(self, keep: $crate::value::Keep) -> Self {
            self.policy($crate::value::$policy::new().keep(keep))
        }
    };
    (keep_errors($policy:ident) $(#[$more:meta])*) => {
        /// Sets whether errors and panics are kept; see [`RunPolicy::keep_errors`](crate::RunPolicy::keep_errors).
        ///
        $(#[$more])*
        pub fn keep_errors(self, keep_errors: bool) -> Self {
            self.policy($crate::value::$policy::new().keep_errors(keep_errors))
        }
    };
    (after_crash($policy:ident) $(#[$more:meta])*) => {
        /// Sets what happens once the lease of a running operation has lapsed.
        ///
        #[doc = concat!("See [`after_crash`](crate::", stringify!($policy), "::after_crash) of the policy.")]
        ///
        $(#[$more])*
        pub fn after_crash(self, after_crash: $crate::value::AfterCrash) -> Self {
            self.policy($crate::value::$policy::new().after_crash(after_crash))
        }
    };
    (retention($policy:ident) $(#[$more:meta])*) => {
        /// Sets how long the record of an ended operation answers duplicates.
        ///
        #[doc = concat!("See [`retention`](crate::", stringify!($policy), "::retention) of the policy.")]
        ///
        $(#[$more])*
        ///
        /// # Panics
        ///
        /// Panics if `retention` is less than a millisecond.
        #[track_caller]
        pub fn retention(self, retention: ::std::time::Duration) -> Self {
            self.policy($crate::value::$policy::new().retention(retention))
        }
    };
    (lease($policy:ident) $(#[$more:meta])*) => {
        /// Sets how long a running operation keeps its key without a renewal.
        ///
        #[doc = concat!("See [`lease`](crate::", stringify!($policy), "::lease) of the policy.")]
        ///
        $(#[$more])*
        ///
        /// # Panics
        ///
        /// Panics if `lease` is less than a millisecond.
        #[track_caller]
        pub fn lease(self, lease: ::std::time::Duration) -> Self {
            self.policy($crate::value::$policy::new().lease(lease))
        }
    };
    (retry_after($policy:ident) $(#[$more:meta])*) => {
        /// Sets when a client that is refused for now should try again; see
        /// [`Policy::retry_after`](crate::Policy::retry_after).
        ///
        $(#[$more])*
        pub fn retry_after(self, retry_after: ::std::time::Duration) -> Self {
            self.policy($crate::value::$policy::new().retry_after(retry_after))
        }
    };
    (request_limit($policy:ident) $(#[$more:meta])*) => {
        /// Sets how long a request body may be, in bytes; see
        /// [`Policy::request_limit`](crate::Policy::request_limit).
        ///
        $(#[$more])*
        pub fn request_limit(self, bytes: usize) -> Self {
            self.policy($crate::value::$policy::new().request_limit(bytes))
        }
    };
    (response_limit($policy:ident) $(#[$more:meta])*) => {
        /// Sets how long an answer's body may be, in bytes, for the answer to be kept; see
        /// [`Policy::response_limit`](crate::Policy::response_limit).
        ///
        $(#[$more])*
        pub fn response_limit(self, bytes: usize) -> Self {
            self.policy($crate::value::$policy::new().response_limit(bytes))
        }
    };
    (stream_after($policy:ident) $(#[$more:meta])*) => {
        /// Sets how long an answer without a length is read before it is passed on as a stream; see
        /// [`Policy::stream_after`](crate::Policy::stream_after).
        ///
        $(#[$more])*
        pub fn stream_after(self, duration: ::std::time::Duration) -> Self {
            self.policy($crate::value::$policy::new().stream_after(duration))
        }
    };
}

pub(crate) use {policy_setter, policy_setters};
