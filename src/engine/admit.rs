//! Admission: the claim of a key, and the wait while another run holds it.
//!
//! ```text
//! bounds on background tasks ── too many ──► TooManyTasks
//!         │
//!       claim ◄────────────────────────────┐
//!         │                                │ ended, lapsed, or time to ask again
//!         ├─ granted in time ──► Grant     │
//!         ├─ granted too late ─► released, Unavailable
//!         ├─ running ── time to wait ──────► wait
//!         │        └─── none ──► Running
//!         └─ settled, mismatch, … ──► why it does not run
//! ```
//!
//! A store that is immediate is asked by `admit_now`, without a future: nothing has to be kept for a request that is
//! answered there. Every other claim has a `PendingClaim` beside it until its answer is read, so that neither a timeout
//! nor a disconnect leaves a claim that nobody knows of.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    ClaimRequest, Engine, NotRun,
    pending_claim::PendingClaim,
    timer::{Timer, bounded_by},
    wait_report::{Waiting, end_wait},
};
use crate::{
    store::{Claimed, Granted, Transaction},
    value::{Event, RecordKey, StoreError, StoreErrorKind, StoreVerb, WaitEnd},
};

/// A claim that was granted, for the run that begins with it.
pub(crate) struct Grant {
    pub(super) granted: Granted,
    /// The moment before the claim was sent, from which its lease counts.
    pub(super) sent: Instant,
    /// How long the store took to grant it, if anybody observes.
    pub(super) took: Duration,
    /// The timer of the claim, for the next call of the same run.
    pub(super) timer: Option<Timer>,
    /// The transaction that the claim is part of.
    pub(super) transaction: Option<Box<dyn Transaction>>,
}

impl Engine {
    /// Claims the key of a request. While another run holds it, waits for that.
    ///
    /// # Errors
    ///
    /// Returns the reason if the request does not run.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped while the claim is on its way, the claim is released in the background. If it is
    /// dropped while it waits, nothing is left behind.
    pub(crate) async fn admit(&self, request: &ClaimRequest) -> Result<Grant, NotRun> {
        self.background_tasks.admit(&request.party, &request.key).map_err(NotRun::TooManyTasks)?;
        match &self.transactions {
            Some(transactions) => Box::pin(self.enter(&**transactions, request)).await,
            None => self.claim(request).await,
        }
    }

    /// Claims the key of a request in a store that answers at once. `None` means that [`admit`](Self::admit) has to be
    /// awaited, since the store is another one, or the request has to wait; nothing has changed then.
    pub(crate) fn admit_now(&self, request: &ClaimRequest) -> Option<Result<Grant, NotRun>> {
        if !self.is_immediate {
            return None;
        }
        let ClaimRequest { key, claim, party, wait, .. } = request;
        if let Err(refusal) = self.background_tasks.admit(party, key) {
            return Some(Err(NotRun::TooManyTasks(refusal)));
        }
        let sent = Instant::now();
        // If the store is not immediate after all, `admit` repeats the claim, which has the same claimant.
        Some(match self.store.claim(key, claim).into_ready()? {
            Ok(Claimed::Granted(granted)) => Ok(self.granted(key, granted, sent, None, None)),
            Ok(Claimed::Running { .. }) if !wait.is_zero() => return None,
            Ok(refused) => Err(refused.into()),
            Err(error) => {
                if !error.is_without_effect() {
                    // It may have taken effect all the same: dropped, the pending claim releases it.
                    drop(PendingClaim::new(self, key, claim));
                }
                Err(self.claim_failed(key, error, None))
            }
        })
    }

    async fn claim(&self, request: &ClaimRequest) -> Result<Grant, NotRun> {
        let ClaimRequest { key, claim, wait, body, .. } = request;
        let start = Instant::now();
        let mut sent = start;
        let mut running = None;
        let mut timer = None;
        // Boxed, like all that most requests do not need: each of them would have room for it.
        let mut waiting: Option<Box<Waiting<'_>>> = None;
        // A grant that arrives after its lease may have been taken over already.
        let limit = self.store_timeout.min(claim.lease);
        loop {
            let pending = PendingClaim::new(self, key, claim);
            let claimed = match bounded_by(&mut timer, self.store.claim(key, claim), limit).await {
                Ok(claimed) => claimed,
                Err(error) => {
                    if error.is_without_effect() {
                        pending.disarm();
                    }
                    end_wait(&mut waiting, WaitEnd::StoreFailed);
                    return Err(self.claim_failed(key, error, running));
                }
            };
            if matches!(claimed, Claimed::Granted(_)) && sent.elapsed() >= claim.lease {
                end_wait(&mut waiting, WaitEnd::StoreFailed);
                // Dropping the pending claim releases it.
                return Err(self.granted_too_late(key, running));
            }
            pending.disarm();
            match claimed {
                Claimed::Granted(granted) => {
                    end_wait(&mut waiting, WaitEnd::Ended);
                    return Ok(self.granted(key, granted, sent, timer, None));
                }
                Claimed::Running { holder, left } => {
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
                    let asked = Instant::now();
                    let rest = wait.saturating_sub(start.elapsed());
                    if !Box::pin(self.wait(&mut waiting.waiter, holder, limit, rest)).await {
                        waiting.report.end = WaitEnd::TimedOut;
                        return Err(NotRun::Running(left.saturating_sub(asked.elapsed())));
                    }
                    sent = Instant::now();
                }
                ended => {
                    if let Some(waiting) = &mut waiting {
                        waiting.waiter.has_ended();
                        waiting.report.end = WaitEnd::Ended;
                    }
                    return Err(ended.into());
                }
            }
        }
    }

    /// Reports a grant.
    pub(super) fn granted(
        &self,
        key: &RecordKey,
        granted: Granted,
        sent: Instant,
        timer: Option<Timer>,
        transaction: Option<Box<dyn Transaction>>,
    ) -> Grant {
        let Granted { attempt, takeover, .. } = granted;
        let took = self.observed_since(Some(sent));
        self.report(&Event::Claimed { key, attempt, takeover, took });
        Grant { granted, sent, took, timer, transaction }
    }

    /// Reports a claim that the store did not answer. `running` is the lease of another run that it had reported
    /// before.
    pub(super) fn claim_failed(&self, key: &RecordKey, error: StoreError, running: Option<Duration>) -> NotRun {
        self.report(&Event::StoreFailed { key, verb: StoreVerb::Claim, error: &error, retried: false });
        NotRun::Unavailable { error, running }
    }

    /// Refuses a grant that is read after its lease has lapsed: this process stood still, and another one may have
    /// taken over by now.
    pub(super) fn granted_too_late(&self, key: &RecordKey, running: Option<Duration>) -> NotRun {
        let message = "the claim was granted after its lease had lapsed";
        self.claim_failed(key, StoreError::new(StoreErrorKind::Timeout, message), running)
    }
}

impl From<Claimed> for NotRun {
    /// Converts the answer to a claim that was not granted. A grant that arrives here belongs to a copy of the claim
    /// that nobody waits for, so its outcome is unknown.
    fn from(claimed: Claimed) -> Self {
        match claimed {
            Claimed::Running { left, .. } => Self::Running(left),
            Claimed::Settled(payload, origin) => Self::Settled(payload, origin),
            Claimed::Mismatch(mismatch) => Self::Mismatch(mismatch),
            Claimed::NotIssued | Claimed::Foreign => Self::NotIssued,
            Claimed::Incompatible => Self::Incompatible,
            // A claim is asked for by a new claimant each time, so a late copy has nobody who waits for it.
            Claimed::OutcomeUnknown | Claimed::Granted(_) | Claimed::Withdrawn => Self::OutcomeUnknown,
        }
    }
}
