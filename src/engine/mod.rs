//! One run of one operation: claim, renew, wait, settle, release, and what is left over when a client leaves.
//!
//! The engine knows neither HTTP nor any store, so that requests, messages and plain functions share one set of
//! guarantees.

mod admit;
mod bounded;
mod finish;
mod ghost;
mod lease;
mod leftovers;
mod perform;
mod report;
mod task;
mod unwind;
mod work;

use std::{fmt, sync::Arc, time::Duration};

use crate::{store::Store, value::Observer};

pub use self::leftovers::Leftovers;
pub(crate) use self::{
    admit::Admission,
    finish::Ending,
    lease::Run,
    perform::{Errand, Fate, Performed},
    task::Task,
    unwind::CatchUnwind,
    work::{Stage, Work},
};

/// A store and how it is spoken to.
#[derive(Clone)]
pub(crate) struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) store_timeout: Duration,
    pub(crate) leftovers: Leftovers,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl Engine {
    pub(crate) fn new(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            store_timeout: Duration::from_secs(5),
            leftovers: Leftovers::new(),
            observer: None,
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("store_timeout", &self.store_timeout)
            .field("leftovers", &self.leftovers)
            .finish_non_exhaustive()
    }
}
