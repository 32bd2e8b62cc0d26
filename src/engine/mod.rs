//! One run of one operation: claim, renew, wait, settle, release, and what is left over when a client leaves.
//!
//! The engine knows neither HTTP nor any store, so that requests, messages and plain functions share one set of
//! guarantees.

mod adjusted;
mod admit;
mod background;
mod bounded;
mod finish;
mod lease;
mod operation;
mod pending_claim;
mod perform;
mod permanent;
mod report;
mod task;
mod transact;
mod unwind;
mod waiting;
mod work;

use std::{fmt, sync::Arc, time::Duration};

use self::waiting::Waiters;
use crate::{
    store::{Store, TransactionalStore},
    value::{Observer, Secret},
};

pub(crate) use self::{
    adjusted::Adjusted,
    admit::{Admission, Ask},
    background::Party,
    finish::{Ending, How},
    lease::Run,
    perform::{Execution, ExecutionOutcome, Fate, NoOutcome},
    permanent::Permanent,
    task::Task,
    transact::RunContext,
    unwind::CatchUnwind,
    waiting::WaitingBodies,
    work::{Stage, Work},
};
pub use self::{background::BackgroundTasks, operation::Operation};

/// A store and how it is spoken to.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) store: Arc<dyn Store>,
    /// Runs are claimed in transactions of this, in which the work is done too.
    pub(crate) transactions: Option<Arc<dyn TransactionalStore>>,
    pub(crate) store_timeout: Duration,
    pub(crate) background_tasks: BackgroundTasks,
    pub(crate) waiting: Arc<WaitingBodies>,
    waiters: Arc<Waiters>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// Keys what the store, logs and other services see of callers and contents.
    pub(crate) secret: Option<Secret>,
}

impl Engine {
    pub(crate) fn new(store: impl Store) -> Self {
        Self::on(Arc::new(store), None)
    }

    /// An engine whose runs are claimed in the work's own transactions.
    pub(crate) fn transactional(store: impl TransactionalStore) -> Self {
        let store = Arc::new(store);
        Self::on(store.clone(), Some(store))
    }

    fn on(store: Arc<dyn Store>, transactions: Option<Arc<dyn TransactionalStore>>) -> Self {
        Self {
            store,
            transactions,
            store_timeout: Duration::from_secs(5),
            background_tasks: BackgroundTasks::new(),
            waiting: WaitingBodies::new(WaitingBodies::LIMIT),
            waiters: Arc::default(),
            observer: None,
            secret: None,
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("store_timeout", &self.store_timeout)
            .field("background tasks", &self.background_tasks)
            .field("transactional", &self.transactions.is_some())
            .finish_non_exhaustive()
    }
}
