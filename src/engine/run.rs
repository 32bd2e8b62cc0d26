//! A run and its heartbeat.
//!
//! The heartbeat is polled together with the work, after it, by the same task. So it costs no task, it stops if the
//! work is dropped, and it cannot keep the lease of work that blocks its thread. It begins with the first poll in which
//! the work is pending: work that is ready at once costs neither a timer nor a renewal.
//!
//! The lease is renewed at a third of its length. `renewed` is the moment *before* the claim or the renewal was sent,
//! so that the end of the lease is never assumed later than the store has it.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    time::Duration,
};

use tokio::time::{Instant, sleep_until};

use super::{Engine, Work, bounded::bounded};
use crate::{
    store::{Granted, Renewed, Transaction},
    value::{Claim, Event, RecordKey, StoreVerb},
};

/// A run: a claim that was granted, and its end.
pub(crate) struct Run<'a> {
    pub(super) engine: &'a Engine,
    pub(super) work: &'a Work,
    pub(super) key: &'a RecordKey,
    pub(super) claim: &'a Claim,
    pub(crate) granted: Granted,
    /// When the claim, or its last renewal that succeeded, was sent.
    pub(super) renewed: Instant,
    /// It is being settled or released: a renewal that is refused may only mean that the settling took effect.
    pub(super) ending: bool,
    /// The transaction that the claim is part of. There is no lease to renew then.
    pub(super) transaction: Option<Box<dyn Transaction>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        work: &'a Work,
        key: &'a RecordKey,
        claim: &'a Claim,
        granted: Granted,
        sent: Instant,
    ) -> Self {
        work.hold_until(sent.checked_add(claim.lease));
        Self { engine, work, key, claim, granted, renewed: sent, ending: false, transaction: None }
    }

    /// Polls `future` to its end, and renews the lease meanwhile, three times within its length.
    ///
    /// The future is polled before the heartbeat. A future that is ready at once costs no timer.
    pub(crate) async fn hold<T>(&mut self, mut future: Pin<&mut impl Future<Output = T>>) -> T {
        let mut idle = Some(self).filter(|run| run.transaction.is_none());
        let mut heartbeat = None;
        poll_fn(|cx| {
            let polled = future.as_mut().poll(cx);
            if polled.is_pending() {
                // Boxed, and not made before it is needed: most of the size of a request would be that of its renewals.
                heartbeat = heartbeat.take().or_else(|| idle.take().map(|run| Box::pin(run.heartbeat())));
                heartbeat.take_if(|heartbeat| heartbeat.as_mut().poll(cx).is_ready());
            }
            polled
        })
        .await
    }

    /// Reports a lease that lapsed without a try to renew it: nobody polled the run, so its handler blocked the thread.
    pub(super) fn look_for_a_stall(&self, now: Instant) {
        let after = now.duration_since(self.renewed);
        if after > self.claim.lease && !self.work.is_overdue() {
            self.engine.report(&Event::Stalled { key: self.key, after });
        }
    }

    /// Renews the lease until the claim is lost or its end took effect.
    ///
    /// A failed renewal is repeated after a tenth of the lease. Past the end of the lease the work is *overdue*: it may
    /// have been taken over, but a renewal that still succeeds makes it current again.
    async fn heartbeat(&mut self) {
        if self.work.is_lost() {
            return;
        }
        let lease = self.claim.lease;
        let mut next = self.renewed + lease / 3;
        loop {
            sleep_until(next).await;
            let sent = Instant::now();
            let ends = self.renewed + lease;
            self.look_for_a_stall(sent);
            let mut limit = self.engine.store_timeout.min(lease / 3);
            if sent < ends {
                limit = limit.min(ends - sent);
            }
            match bounded(self.engine.store.renew(self.key, self.claim), limit).await {
                Ok(Renewed::Done) => {
                    self.renewed = sent;
                    self.work.hold_until(sent.checked_add(lease));
                    self.work.set_overdue(false);
                    next = sent + lease / 3;
                }
                Ok(Renewed::Lost) if self.ending => return,
                Ok(Renewed::Lost) => {
                    let attempt = self.granted.attempt;
                    self.engine.report(&Event::ClaimLost { key: self.key, attempt });
                    return self.work.lose();
                }
                Err(error) => {
                    let (key, verb) = (self.key, StoreVerb::Renew);
                    self.engine.report(&Event::StoreFailed { key, verb, error: &error, retried: true });
                    next = Instant::now() + (lease / 10).clamp(Duration::from_millis(1), Duration::from_secs(1));
                    if next >= ends {
                        sleep_until(ends).await;
                        self.work.set_overdue(true);
                    }
                }
            }
        }
    }
}
