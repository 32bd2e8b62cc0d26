//! Admission: the claim of a key, and the wait while another request runs.
//!
//! ```text
//! bounds on background tasks ── too many ──► Refused
//!         │
//!       claim ◄────────────────────────────┐
//!         │                                │ ended, lapsed, or time to ask again
//!         ├─ granted in time ──► Run       │
//!         ├─ granted too late ─► released, Failed
//!         ├─ running ── patience left ──► wait
//!         │        └─── none ──► Running
//!         └─ settled, mismatch, … ──► the answer
//! ```
//!
//! Each claim that is sent has a `PendingClaim` beside it until its answer is read, so that neither a timeout nor a
//! disconnect leaves a claim that nobody knows of.

use std::{future::Future, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Engine, Party, Run, Stage, Work, bounded::bounded, pending_claim::PendingClaim, waiting::Waiter};
use crate::{
    store::Claimed,
    value::{Claim, Event, Mismatch, Origin, RecordKey, Refusal, StoreError, StoreErrorKind, StoreVerb},
};

/// Whether a request may run, and if not, why.
pub(crate) enum Admission<'a> {
    /// It may run.
    Run(Run<'a>),
    /// Its caller, or all callers together, have too many background tasks.
    Refused(Refusal),
    /// Another request runs. Its lease ends after this time.
    Running(Duration),
    /// The operation has ended, with this answer; `None` is a tombstone. The origin is that of its first claim.
    Settled(Option<Bytes>, Origin),
    /// The key belongs to another request or caller.
    Mismatch(Mismatch),
    /// The record cannot be compared: a later version wrote it, or its secret is not available.
    Incompatible,
    /// The operation began, must not run again, and its outcome was never recorded.
    OutcomeUnknown,
    /// The key had to be issued (a token), and was not, or for another purpose or principal.
    NotIssued,
    /// The store failed. `running` is the lease of another request that the store had reported before.
    Failed { error: StoreError, running: Option<Duration> },
}

impl From<Claimed> for Admission<'_> {
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

/// A request for admission.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) work: &'a Work,
    pub(crate) key: &'a RecordKey,
    pub(crate) claim: &'a Claim,
    /// The stage of its work after the grant.
    pub(crate) stage: Stage,
    pub(crate) party: &'a Party,
    /// How long it waits while another request runs.
    pub(crate) patience: Duration,
    /// The size of the body that is held in memory while it waits.
    pub(crate) body: usize,
}

impl Engine {
    /// Claims the key of a request. While another request runs, waits for it.
    ///
    /// # Cancellation
    ///
    /// If the future is dropped while the claim is on its way, the claim is released in the background. If it is
    /// dropped while it waits, nothing is left behind.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    pub(crate) fn admit<'a>(&'a self, ask: Ask<'a>) -> impl Future<Output = Admission<'a>> {
        async move {
            let Ask { work, key, claim, stage, party, patience, body } = ask;
            if let Err(refusal) = self.background_tasks.admit(party, key) {
                return Admission::Refused(refusal);
            }
            if let Some(transactions) = &self.transactions {
                return Box::pin(self.enter(&**transactions, ask)).await;
            }
            let start = Instant::now();
            let mut sent = start;
            let mut running = None;
            // Boxed, like all that most requests do not need: each of them would have room for it.
            let mut waiter: Option<Box<Waiter<'_>>> = None;
            // A grant that arrives after its lease may have been taken over already.
            let limit = self.store_timeout.min(claim.lease);
            loop {
                let pending = PendingClaim::new(self, work, key, claim);
                let claimed = match bounded(self.store.claim(key, claim), limit).await {
                    Ok(claimed) => claimed,
                    Err(error) => {
                        self.report(&Event::StoreFailed { key, verb: StoreVerb::Claim, error: &error, retried: false });
                        if error.is_without_effect() {
                            pending.disarm();
                        }
                        return Admission::Failed { error, running };
                    }
                };
                if matches!(claimed, Claimed::Granted(_)) && sent.elapsed() >= claim.lease {
                    // Dropping the pending claim releases it.
                    return self.granted_too_late(key, running);
                }
                pending.disarm();
                match claimed {
                    Claimed::Granted(granted) => {
                        work.claimed(key, party, stage);
                        let (attempt, takeover) = (granted.attempt, granted.takeover);
                        self.report(&Event::Claimed { key, attempt, takeover });
                        return Admission::Run(Run::new(self, work, key, claim, granted, sent));
                    }
                    Claimed::Running { holder, left } => {
                        running = Some(left);
                        if start.elapsed() >= patience {
                            return Admission::Running(left);
                        }
                        if waiter.is_none() {
                            waiter = self.waiting.hold(body).map(|held| Box::new(self.waiters.join(key, held)));
                        }
                        let Some(waiter) = &mut waiter else { return Admission::Running(left) };
                        waiter.is_running(left);
                        let asked = Instant::now();
                        let rest = patience.saturating_sub(start.elapsed());
                        if !Box::pin(self.wait(waiter, holder, limit, rest)).await {
                            return Admission::Running(left.saturating_sub(asked.elapsed()));
                        }
                        sent = Instant::now();
                    }
                    ended => {
                        if let Some(waiter) = waiter {
                            waiter.has_ended();
                        }
                        return ended.into();
                    }
                }
            }
        }
    }

    /// Refuses a grant that is read after its lease has lapsed: this process stood still, and another one may have
    /// taken over by now.
    pub(super) fn granted_too_late(&self, key: &RecordKey, running: Option<Duration>) -> Admission<'_> {
        let error = StoreError::new(StoreErrorKind::Timeout, "the claim was granted after its lease had lapsed");
        self.report(&Event::StoreFailed { key, verb: StoreVerb::Claim, error: &error, retried: false });
        Admission::Failed { error, running }
    }
}
