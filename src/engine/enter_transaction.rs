//! Claims and ends in transaction mode.
//!
//! The store opens a transaction and writes the claim in it; the handler works in the same transaction; the end commits
//! both or rolls both back. There is no lease to renew, and no pending claim to release: a transaction that is dropped
//! is rolled back, and the database ends that of a process that died.

use tokio::time::Instant;

use super::{
    ClaimRequest, Engine, Grant, NotRun,
    timer::{bounded, bounded_by},
    wait_report::{Waiting, end_wait},
};
use crate::{
    store::{Claimed, Entered, TransactionalStore},
    value::WaitEnd,
};

impl Engine {
    /// Claims the key of a request in a transaction of its own. While another one runs, waits for it.
    ///
    /// Dropped at any time, nothing is left behind.
    pub(super) async fn enter(&self, store: &dyn TransactionalStore, request: &ClaimRequest) -> Result<Grant, NotRun> {
        let ClaimRequest { key, claim, wait, body, .. } = request;
        let start = Instant::now();
        let mut running = None;
        let mut timer = None;
        // As with any other claim: the database ends a transaction in which nothing was done for a lease.
        let limit = self.store_timeout.min(claim.lease);
        let mut waiting: Option<Box<Waiting<'_>>> = None;
        loop {
            let sent = Instant::now();
            match bounded_by(&mut timer, store.enter(key, claim), limit).await {
                Ok(Entered::Granted(_, transaction)) if sent.elapsed() >= claim.lease => {
                    // Whatever the database says: a transaction that is not committed ends with its connection.
                    let _ = bounded(transaction.roll_back(), self.store_timeout).await;
                    end_wait(&mut waiting, WaitEnd::StoreFailed);
                    return Err(self.granted_too_late(key, running));
                }
                Ok(Entered::Granted(granted, transaction)) => {
                    end_wait(&mut waiting, WaitEnd::Ended);
                    return Ok(self.granted(key, granted, sent, timer, Some(transaction)));
                }
                Ok(Entered::Refused(Claimed::Running { left, .. })) => {
                    running = Some(left);
                    if start.elapsed() >= *wait {
                        end_wait(&mut waiting, WaitEnd::TimedOut);
                        return Err(NotRun::Running(left));
                    }
                    if waiting.is_none() {
                        waiting = self.begin_wait(key, *body).map(Box::new);
                    }
                    let Some(waiting) = &mut waiting else { return Err(NotRun::Running(left)) };
                    waiting.waiter.is_running(left);
                    let rest = wait.saturating_sub(start.elapsed());
                    if !self.wait_for_transaction(store, &mut waiting.waiter, rest).await {
                        waiting.report.end = WaitEnd::TimedOut;
                        return Err(NotRun::Running(left));
                    }
                }
                Ok(Entered::Refused(ended)) => {
                    if let Some(waiting) = &mut waiting {
                        waiting.waiter.has_ended();
                        waiting.report.end = WaitEnd::Ended;
                    }
                    return Err(ended.into());
                }
                Err(error) => {
                    end_wait(&mut waiting, WaitEnd::StoreFailed);
                    return Err(self.claim_failed(key, error, running));
                }
            }
        }
    }
}
