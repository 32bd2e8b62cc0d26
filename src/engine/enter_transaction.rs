//! Claims and ends in transaction mode.
//!
//! The store opens a transaction and writes the claim in it; the handler works in the same transaction; the end commits
//! both or rolls both back. There is no lease to renew, and no pending claim to release: a transaction that is dropped
//! is rolled back, and the database ends that of a process that died.

use tokio::time::Instant;

use super::{Admission, Ask, Engine, FinishOutcome, Run, bounded::bounded, finish::EndRequest, waiting::Waiter};
use crate::{
    store::{Claimed, Committed, Entered, Granted, Transaction, TransactionSlot, TransactionalStore},
    value::{Claimant, Event, Secret, StoreError, StoreVerb},
};

impl Engine {
    /// Claims `key` in a transaction of its own. While another one runs, waits for it for `patience` at most.
    ///
    /// Dropped at any time, nothing is left behind.
    pub(super) async fn enter<'a>(&'a self, store: &'a dyn TransactionalStore, ask: Ask<'a>) -> Admission<'a> {
        let Ask { work, key, claim, stage, party, patience, body } = ask;
        let start = Instant::now();
        let mut running = None;
        // As with any other claim: the database ends a transaction in which nothing was done for a lease.
        let limit = self.store_timeout.min(claim.lease);
        let mut waiter: Option<Waiter<'_>> = None;
        loop {
            let sent = Instant::now();
            match bounded(store.enter(key, claim), limit).await {
                Ok(Entered::Granted(_, transaction)) if sent.elapsed() >= claim.lease => {
                    // Whatever the database says: a transaction that is not committed ends with its connection.
                    let _ = bounded(transaction.roll_back(), self.store_timeout).await;
                    return self.granted_too_late(key, running);
                }
                Ok(Entered::Granted(granted, transaction)) => {
                    work.claimed(key, party, stage);
                    let (attempt, takeover) = (granted.attempt, granted.takeover);
                    self.report(&Event::Claimed { key, attempt, takeover });
                    let run = Run::new(self, work, key, claim, granted, sent);
                    // Nobody has it before the transaction ends.
                    work.hold_until(None);
                    return Admission::Run(Run { transaction: Some(transaction), ..run });
                }
                Ok(Entered::Refused(Claimed::Running { left, .. })) => {
                    running = Some(left);
                    if start.elapsed() >= patience {
                        return Admission::Running(left);
                    }
                    if waiter.is_none() {
                        waiter = self.waiting.hold(body).map(|held| self.waiters.join(key, held));
                    }
                    let Some(waiter) = &mut waiter else { return Admission::Running(left) };
                    waiter.is_running(left);
                    let rest = patience.saturating_sub(start.elapsed());
                    if !self.wait_for_transaction(store, waiter, rest).await {
                        return Admission::Running(left);
                    }
                }
                Ok(Entered::Refused(ended)) => {
                    if let Some(waiter) = waiter {
                        waiter.has_ended();
                    }
                    return ended.into();
                }
                Err(error) => {
                    self.report(&Event::StoreFailed { key, verb: StoreVerb::Claim, error: &error, retried: false });
                    return Admission::Failed { error, running };
                }
            }
        }
    }
}

/// What a handler may see of the claim under which it runs.
pub(crate) struct RunContext {
    pub(crate) claimant: Claimant,
    pub(crate) granted: Granted,
    pub(crate) secret: Option<Secret>,
    /// The slot of its transaction, in transaction mode.
    #[cfg_attr(not(feature = "_sql"), allow(dead_code))]
    pub(crate) slot: Option<TransactionSlot>,
}

impl Run<'_> {
    pub(crate) fn started(&self) -> RunContext {
        let slot = self.transaction.as_ref().map(|transaction| transaction.slot());
        RunContext { claimant: self.claim.claimant, granted: self.granted, secret: self.engine.secret.clone(), slot }
    }

    /// Commits the transaction with the record in it, or rolls it back.
    pub(super) async fn end(self, transaction: Box<dyn Transaction>, how: EndRequest) -> FinishOutcome {
        let (engine, key, verb) = (self.engine, self.key, how.verb());
        let failed = |error: &StoreError| {
            engine.report(&Event::StoreFailed { key, verb, error, retried: false });
            engine.report(&Event::NotRecorded { key, verb });
        };
        match how {
            EndRequest::Settle(settlement) => {
                let tombstone = settlement.payload.is_none();
                match bounded(transaction.commit(settlement), engine.store_timeout).await {
                    Ok(Committed::Done) => {
                        engine.report(&Event::Settled { key, tombstone });
                        FinishOutcome::Recorded
                    }
                    Ok(Committed::RolledBack(error)) => {
                        failed(&error);
                        FinishOutcome::RolledBack
                    }
                    Err(error) => {
                        failed(&error);
                        FinishOutcome::Unknown
                    }
                }
            }
            EndRequest::Release(_) => {
                // Whatever the database says: a transaction that is not committed ends with its connection.
                match bounded(transaction.roll_back(), engine.store_timeout).await {
                    Ok(()) => engine.report(&Event::Released { key }),
                    Err(error) => failed(&error),
                }
                FinishOutcome::Recorded
            }
        }
    }
}
