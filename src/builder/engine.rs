//! Setters of the engine, and of what it takes for an end.

macro_rules! engine_setters {
    ($($(#[$more:meta])* $name:ident),* $(,)?) => {
        $($crate::builder::engine_setter! { $name $(#[$more])* })*
    };
}

macro_rules! engine_setter {
    (store_timeout $(#[$more:meta])*) => {
        /// Sets how long the store may take to answer. Default: 5 seconds.
        ///
        /// This limits how long an operation waits for its claim, and how long its outcome waits to be recorded.
        ///
        $(#[$more])*
        ///
        /// # Panics
        ///
        /// Panics if `timeout` is zero.
        #[track_caller]
        pub fn store_timeout(self, timeout: ::std::time::Duration) -> Self {
            let timeout = $crate::value::nonzero("store timeout", timeout);
            self.with_engine(|engine| engine.store_timeout = timeout)
        }
    };
    (cancel_on_disconnect $(#[$more:meta])*) => {
        /// Drops the work if its caller goes away, instead of finishing it. Its claim then lapses.
        ///
        /// The caller is gone once the future of its call is dropped, as it is if a client disconnects.
        ///
        $(#[$more])*
        pub fn cancel_on_disconnect(self) -> Self {
            self.with_engine(|engine| engine.cancel_on_disconnect = true)
        }
    };
    (background_tasks $(#[$more:meta])*) => {
        /// Sets the [`BackgroundTasks`](crate::BackgroundTasks) that limit, count and await work whose caller has gone.
        /// Clones share them.
        ///
        $(#[$more])*
        pub fn background_tasks(self, background_tasks: $crate::engine::BackgroundTasks) -> Self {
            self.with_engine(|engine| engine.background_tasks = background_tasks)
        }
    };
    (secret $(#[$more:meta])*) => {
        /// Sets the secret that keys the digests of callers and contents in the store, in logs and at other services.
        /// Default: none.
        ///
        /// See [`Secret`](crate::Secret) for what it protects, and for how to replace it.
        ///
        $(#[$more])*
        pub fn secret(self, secret: $crate::value::Secret) -> Self {
            self.with_engine(|engine| engine.secret = Some(secret))
        }
    };
    (observer $(#[$more:meta])*) => {
        /// Adds an observer, which receives the [events](crate::Event). Several calls add up; the observers are called in
        /// their order.
        ///
        $(#[$more])*
        pub fn observer(self, observer: impl $crate::value::Observer) -> Self {
            self.with_engine(|engine| engine.observers.add(observer))
        }
    };
    (switch $(#[$more:meta])*) => {
        /// Adds a [`Switch`](crate::Switch), which turns the protection off and on while the service runs. Several calls
        /// add up: the switch that protects least decides.
        ///
        $(#[$more])*
        pub fn switch(self, switch: $crate::value::Switch) -> Self {
            self.with_engine(|engine| engine.switches.add(switch))
        }
    };
    (permanent_errors $(#[$more:meta])*) => {
        /// Sets which errors no other try can change, such as a closed account: such an error is kept, and nothing runs
        /// again under its key.
        ///
        /// `E` is the error type of what is run; errors of another type are never permanent. Work in a transaction of
        /// the layer is rolled back. What is run can report the same with
        /// [`Operation::fail_permanently`](crate::Operation::fail_permanently).
        ///
        $(#[$more])*
        pub fn permanent_errors<E: 'static>(self, is_permanent: impl Fn(&E) -> bool + Send + Sync + 'static) -> Self {
            self.with_permanent($crate::engine::Permanent::when(is_permanent))
        }
    };
}

pub(crate) use {engine_setter, engine_setters};
