//! One run: a claim that was granted, the work under it, and its end.
//!
//! ```text
//! Grant ──► Run ──► Execution: poll the work ──► end the claim ──► Outcome ──► what the caller receives
//!            │         │ pending: heartbeat        │ a store that is immediate: within the same poll
//!         RunState     │                           └ any other: `finish`, boxed
//! ```
//!
//! - `job`: the work, as a trait that requests implement by hand.
//! - `state`: what the handler, the heartbeat and the guard of a client that leaves share.
//! - `execution`: the future of the whole.
//! - `heartbeat`: renews the lease while the work is pending.
//! - `end_request`: what the store is asked for at the end. `finish`: settles, releases or undoes, with retries. `commit`: the same in transaction mode.
//! - `outcome`: what came of it.
//!
//! # Why the future is written by hand
//!
//! Each request has one, and an `async fn` reserves room for every value that lives across any of its awaits, several
//! times over where it is nested. Here each thing is there once: the work and its result share their place, the calls
//! of a store that answers at once need none, and what few runs need (heartbeat, retries, transactions) is boxed when
//! it is needed. The whole has to stay below 640 bytes for a handler of Axum: glibc serves allocations of up to 1,032
//! bytes from a cache of the thread, and a larger one costs several times as much. `benches/layer` measures it, and
//! `src/http/tests.rs` asserts it.

mod commit;
mod end_request;
mod execution;
mod finish;
mod heartbeat;
mod job;
mod outcome;
mod state;

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::Context,
};

use tokio::time::Instant;

use self::heartbeat::Heartbeat;
use super::{ClaimRequest, Engine, Grant, timer::Timer};
use crate::store::Transaction;

pub(crate) use self::{
    execution::Execution,
    job::{FnJob, FnSettings, Job, retention},
    outcome::{Completion, NotRun, Outcome, Standing},
    state::RunState,
};

/// A claim that was granted. It is ended by the [`Execution`] that it becomes.
pub(crate) struct Run {
    pub(crate) state: Arc<RunState>,
    heartbeat: Option<Box<Heartbeat>>,
    timer: Option<Timer>,
    /// The transaction that the claim is part of. There is no lease to renew then.
    transaction: Option<Box<dyn Transaction>>,
}

impl Run {
    /// Begins a run.
    pub(crate) fn new(engine: &Engine, request: ClaimRequest, grant: Grant) -> Self {
        let state = Arc::new(RunState::new(engine, request, &grant));
        Self { state, heartbeat: None, timer: grant.timer, transaction: grant.transaction }
    }

    /// Runs a job, and ends the claim as the job says.
    #[inline]
    pub(crate) fn execute<J: Job>(self, job: J) -> Execution<J> {
        Execution::new(self, job)
    }

    /// Returns when the lease has to be renewed first; `None` if it never has to be.
    fn renewal_due(&self) -> Option<Instant> {
        if self.state.is_lost() {
            return None;
        }
        self.state.renewed()?.checked_add(self.state.claim.lease / 3)
    }

    /// Renews the lease while something is pending.
    fn keep_alive(&mut self, engine: &Arc<Engine>, cx: &mut Context<'_>) {
        if self.heartbeat.is_none() {
            let Some(due) = self.renewal_due() else { return };
            self.heartbeat = Some(Box::new(Heartbeat::new(self.timer.take(), due)));
        }
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.poll(engine, &self.state, cx);
        }
    }

    /// Awaits `future`, and renews the lease meanwhile.
    async fn hold<T>(&mut self, engine: &Arc<Engine>, mut future: Pin<&mut impl Future<Output = T>>) -> T {
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() {
                self.keep_alive(engine, cx);
            }
            polled
        })
        .await
    }
}
