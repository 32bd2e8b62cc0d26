use std::{future::Future, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use super::{Engine, Party, Run, Stage, Work, bounded::bounded, ghost::PendingClaim, waiters::Waiter};
use crate::{
    store::Claimed,
    value::{Claim, Event, Mismatch, Origin, RecordKey, Refusal, StoreError, StoreErrorKind, StoreVerb},
};

/// May this request run?
pub(crate) enum Admission<'a> {
    /// It may.
    Run(Run<'a>),
    /// Its caller, or all callers together, have left too much unfinished.
    Refused(Refusal),
    /// Another one runs, for this long at least.
    Running(Duration),
    /// It has ended. `None` is a tombstone. The rest is what its first claim brought.
    Settled(Option<Bytes>, Origin),
    /// The key belongs to another request or caller.
    Mismatch(Mismatch),
    /// Nobody can tell whose the record is: it is a later version's, or its secret is not at hand.
    Incompatible,
    /// It was begun, must not be run again, and nobody knows how it ended.
    OutcomeUnknown,
    /// It should have been issued, and was not, or not for this.
    NotIssued,
    /// The store failed. Before that it said, perhaps, that another one runs, for that long at least.
    Failed { error: StoreError, running: Option<Duration> },
}

impl From<Claimed> for Admission<'_> {
    /// What a claim is told that was not granted. One that was granted without anybody to run it has no known end.
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

/// A request that asks to run.
#[derive(Clone, Copy)]
pub(crate) struct Ask<'a> {
    pub(crate) work: &'a Work,
    pub(crate) key: &'a RecordKey,
    pub(crate) claim: &'a Claim,
    /// What its work becomes once it may run.
    pub(crate) stage: Stage,
    pub(crate) party: &'a Party,
    /// How long it waits while another one runs.
    pub(crate) patience: Duration,
    /// How many bytes of its body are held while it waits.
    pub(crate) body: usize,
}

impl Engine {
    /// Claims the key of a request. While another one runs, waits for it.
    ///
    /// Dropped while the claim is on its way, the claim is released in the background; dropped while it waits,
    /// nothing is left behind.
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
            // A grant that comes when its lease is over may have been taken over already.
            let limit = self.store_timeout.min(claim.lease);
            loop {
                let ghost = PendingClaim::new(self, work, key, claim);
                let claimed = match bounded(self.store.claim(key, claim), limit).await {
                    Ok(claimed) => claimed,
                    Err(error) => {
                        self.report(&Event::StoreFailed { key, verb: StoreVerb::Claim, error: &error, retried: false });
                        if error.is_without_effect() {
                            ghost.disarm();
                        }
                        return Admission::Failed { error, running };
                    }
                };
                if matches!(claimed, Claimed::Granted(_)) && sent.elapsed() >= claim.lease {
                    // The ghost gives the claim back.
                    return self.granted_too_late(key, running);
                }
                ghost.disarm();
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

    /// A grant that is read when its lease is over: this process stood still, and another one may have taken over by now.
    pub(super) fn granted_too_late(&self, key: &RecordKey, running: Option<Duration>) -> Admission<'_> {
        let error = StoreError::new(StoreErrorKind::Timeout, "the claim was granted after its lease had lapsed");
        self.report(&Event::StoreFailed { key, verb: StoreVerb::Claim, error: &error, retried: false });
        Admission::Failed { error, running }
    }
}
