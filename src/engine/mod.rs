//! One run of one operation: claim, renew, wait, settle, release, and what is left over when a client leaves.
//!
//! The engine knows neither HTTP nor any store, so that requests, messages and plain functions share one set of
//! guarantees.
//!
//! # In reading order
//!
//! - `request`: what an edge asks for.
//! - `admit`: the claim, and the wait for another run. `pending_claim` releases a claim whose answer never arrived;
//!   `timer` limits the time of a call to the store; `wait` waits, `wait_report` reports it, and `waiting` lets one duplicate of a key ask the store for
//!   all of them; `enter_transaction` is the claim in a transaction of the database.
//! - `run`: a claim that was granted, its work, its heartbeat, its end, and the outcome: the one protocol of requests,
//!   messages, functions and reconciliation.
//! - `task`: both in their caller's task. The run goes on in the background if its caller drops it.
//! - `operation`: what a handler sees of its run, and what it may direct.
//! - `background`: work whose client has left: bounded, counted and awaited.
//! - `switches`, `switched`: whether the layer protects at all. `report`: events, for the observer and for `tracing`.
//!
//! # What always holds
//!
//! - An `Execution` is the only place that settles or releases, and it does so once.
//! - A claim is never forgotten: it is settled, released by its run, released by its pending claim, or left to lapse.
//! - A store is asked within a limit. A grant that is read after its lease is refused, since another process may have
//!   taken over.
//! - No lock is held across an await, and none while code of the application runs. The locks are those of `RunState` (one
//!   assignment), of the parties in `background`, of the map in `waiting` and of the routes in `switches`; no code takes two
//!   of them.
//! - Polling a run renews its lease. There is no task for it: a handler that blocks its thread stops the heartbeat, and
//!   that is reported (`Event::Stalled`).

mod admit;
mod background;
mod enter_transaction;
mod operation;
mod pending_claim;
mod permanent;
mod report;
mod request;
mod run;
mod switched;
mod switches;
mod task;
mod timer;
mod unwind;
mod wait;
mod wait_report;
mod waiting;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use self::{switches::Switches, waiting::Waiters};
use crate::{
    store::{Store, TransactionalStore},
    value::{Observers, RecordKey, Secret},
};

#[cfg(all(test, feature = "axum"))]
pub(crate) use self::run::Execution;
pub(crate) use self::{
    admit::Grant,
    background::Party,
    permanent::Permanent,
    request::ClaimRequest,
    run::{Completion, FnJob, FnSettings, Job, NotRun, Outcome, Run, RunState, Standing, retention},
    task::{Begun, Running, Task},
    unwind::CatchUnwind,
    waiting::WaitingBodies,
};
pub use self::{background::BackgroundTasks, operation::Operation};

/// A store and how it is spoken to.
#[derive(Clone)]
pub(crate) struct Engine {
    /// Where the records are.
    pub(crate) store: Arc<dyn Store>,
    /// Runs are claimed in transactions of this, in which the work is done too.
    pub(crate) transactions: Option<Arc<dyn TransactionalStore>>,
    /// The store answers at once, so that a claim and its end need no future.
    is_immediate: bool,
    /// How long a call to the store may take, and how long a run tries to record its end while a client waits.
    pub(crate) store_timeout: Duration,
    /// Work is dropped with its caller.
    pub(crate) cancel_on_disconnect: bool,
    /// The runs whose clients have left. Layers may share it.
    pub(crate) background_tasks: BackgroundTasks,
    /// Bounds the memory for the bodies of duplicates that wait.
    pub(crate) waiting: Arc<WaitingBodies>,
    /// The duplicates that wait, by key.
    waiters: Arc<Waiters>,
    /// Each of them sees every event.
    pub(crate) observers: Observers,
    /// Whether anything is protected.
    pub(crate) switches: Switches,
    /// Keys what the store, logs and other services see of callers and contents.
    pub(crate) secret: Option<Secret>,
}

impl Engine {
    /// Creates the engine of a layer in lease mode.
    pub(crate) fn new(store: impl Store) -> Self {
        Self::on(Arc::new(store), None)
    }

    /// An engine whose runs are claimed in the work's own transactions.
    pub(crate) fn transactional(store: impl TransactionalStore) -> Self {
        let store = Arc::new(store);
        Self::on(store.clone(), Some(store))
    }

    fn on(store: Arc<dyn Store>, transactions: Option<Arc<dyn TransactionalStore>>) -> Self {
        let is_immediate = transactions.is_none() && store.is_immediate();
        Self {
            store,
            transactions,
            is_immediate,
            store_timeout: Duration::from_secs(5),
            cancel_on_disconnect: false,
            background_tasks: BackgroundTasks::new(),
            waiting: WaitingBodies::new(WaitingBodies::LIMIT),
            waiters: Arc::default(),
            observers: Observers::default(),
            switches: Switches::default(),
            secret: None,
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("store_timeout", &self.store_timeout)
            .field("cancel_on_disconnect", &self.cancel_on_disconnect)
            .field("background tasks", &self.background_tasks)
            .field("transactional", &self.transactions.is_some())
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Claims the key, runs `work` if the claim is granted, and ends the claim.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped, a claim that is on its way is released in the background, and a run is dropped: its
    /// claim lapses. [`Task`] keeps it alive instead.
    ///
    /// # Panics
    ///
    /// Panics if the work panics, after the claim has been ended.
    pub(crate) async fn execute<F, V>(
        self: &Arc<Self>,
        request: ClaimRequest,
        settings: FnSettings,
        work: impl FnOnce(Arc<RunState>) -> F,
    ) -> Outcome<V>
    where
        F: Future<Output = (V, Completion)>,
        V: Send + 'static,
    {
        match self.admit(&request).await {
            Ok(grant) => {
                let run = Run::new(self, request, grant);
                let state = run.state.clone();
                // Inside the future, so that what panics before it is polled is caught as well.
                let work = async move { work(state).await };
                run.execute(FnJob::new(self.clone(), settings, work, |_: &RecordKey, outcome| outcome)).await
            }
            Err(why) => Outcome::NotRun(why),
        }
    }
}
