//! The end of a run.
//!
//! `finish` tries at once, then again with growing pauses within the store timeout, and then hands the rest to the
//! background while the lease can be renewed. Its result says what the client may receive: the handler's answer if it
//! is recorded or if nothing contradicts it, and what the record says if the claim was lost.
//!
//! Settling may be repeated safely: the store compares the claimant, and answers "done already" to a second try of the
//! same one.

use std::{future::Future, pin::pin, time::Duration};

use bytes::Bytes;
use tokio::time::{Instant, sleep};

use super::{Run, Stage, Work, bounded::bounded};
use crate::{
    store::{Finished, StoreFuture},
    value::{Backoff, Event, Record, Release, Settlement, StoreError, StoreErrorKind, StoreVerb},
};

/// How a run ended, as far as its client is concerned.
pub(crate) enum FinishOutcome {
    /// It is recorded.
    Recorded,
    /// The store does not take it for now; nothing is known that speaks against the handler's answer.
    Unrecorded,
    /// The claim was another's by then: what the record says, if there is one.
    Lost(Option<Box<Record>>),
    /// What was done in the run's transaction is undone, and the claim with it.
    RolledBack,
    /// Whether the run's transaction was committed is not known.
    Unknown,
}

/// How a run is to end.
pub(crate) enum EndRequest {
    Settle(Settlement),
    Release(Release),
}

impl EndRequest {
    /// Leaves the answer out, of which there is one, so that what is to be kept is a tombstone.
    fn leave_answer_out(&mut self) -> bool {
        match self {
            Self::Settle(settlement) => settlement.payload.take().is_some(),
            Self::Release(_) => false,
        }
    }

    /// Returns the verb of the store, for events.
    pub(super) fn verb(&self) -> StoreVerb {
        match self {
            Self::Settle(_) => StoreVerb::Settle,
            Self::Release(_) => StoreVerb::Release,
        }
    }
}

impl Run<'_> {
    /// The end of a run that has an answer, or with `None` a tombstone.
    pub(crate) fn settlement(&self, payload: Option<Bytes>, retention: Duration) -> EndRequest {
        EndRequest::Settle(Settlement::new(self.claim.claimant, payload, retention))
    }

    /// The end of a run without an answer, so that the next try runs.
    pub(crate) fn release(&self, keep: Duration) -> EndRequest {
        EndRequest::Release(Release::new(self.claim.claimant, keep))
    }

    /// The end of a run that is to be as if it had not been.
    pub(crate) fn undo(&self, keep: Duration) -> EndRequest {
        EndRequest::Release(Release::undo(self.claim.claimant, keep))
    }

    /// Ends the run.
    ///
    /// Tries for the store timeout; after that, or without a client, goes on for as long as a background task may.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    pub(crate) fn finish(mut self, mut how: EndRequest) -> impl Future<Output = FinishOutcome> {
        async move {
            // From here on it has to be finished, whether its caller stays or not.
            self.work.enter(Stage::Claimed);
            self.ending = true;
            if let Some(transaction) = self.transaction.take() {
                return Box::pin(self.end(transaction, how)).await;
            }
            let start = Instant::now();
            self.look_for_a_stall(start);
            match self.try_once(&mut how, start, self.engine.store_timeout).await {
                Some(ending) => ending,
                None => Box::pin(self.retry(how, start)).await,
            }
        }
    }

    /// The store has failed once.
    async fn retry(mut self, mut how: EndRequest, start: Instant) -> FinishOutcome {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        loop {
            let mut left = self.engine.store_timeout.saturating_sub(start.elapsed() + backoff.coming());
            if self.work.is_detached() {
                // No client waits for it, and the place that it has is one in the background.
                left = self.engine.store_timeout;
            }
            if left.is_zero() {
                break;
            }
            self.hold(pin!(sleep(backoff.pause()))).await;
            if let Some(ending) = self.try_once(&mut how, Instant::now(), left).await {
                return ending;
            }
        }
        if self.work.is_lost() {
            // There is nothing of this run's left to end.
            return FinishOutcome::Lost(None);
        }
        self.go_on_in_background(how);
        FinishOutcome::Unrecorded
    }

    /// Tries for `limit` from `start` on. `None` means: try again.
    ///
    /// An answer that is too large for the store is left out at once: that the operation ran is short, and has to be
    /// recorded.
    async fn try_once(&mut self, how: &mut EndRequest, start: Instant, mut limit: Duration) -> Option<FinishOutcome> {
        let (engine, key) = (self.engine, self.key);
        loop {
            let answer: StoreFuture<'_, Finished> = match how {
                EndRequest::Settle(settlement) => engine.store.settle(key, settlement),
                EndRequest::Release(release) => engine.store.release(key, release),
            };
            let answer = self.hold(pin!(bounded(answer, limit))).await;
            match answer {
                Err(error) if error.kind() == StoreErrorKind::TooLarge && how.leave_answer_out() => {
                    engine.report(&self.failed(how, &error, true));
                    limit = limit.saturating_sub(start.elapsed());
                }
                answer => return self.outcome_of(how, answer),
            }
        }
    }

    /// Returns the event of a store that failed at the end of the run.
    fn failed<'a>(&'a self, how: &EndRequest, error: &'a StoreError, retried: bool) -> Event<'a> {
        Event::StoreFailed { key: self.key, verb: how.verb(), error, retried }
    }

    /// Reports the store's answer, and returns the ending; `None` means: try again.
    fn outcome_of(&self, how: &EndRequest, answer: Result<Finished, StoreError>) -> Option<FinishOutcome> {
        let (engine, key) = (self.engine, self.key);
        match answer {
            Ok(Finished::Done | Finished::AlreadyDone) => {
                engine.report(&match how {
                    EndRequest::Settle(settlement) => Event::Settled { key, tombstone: settlement.payload.is_none() },
                    EndRequest::Release(_) => Event::Released { key },
                });
                Some(FinishOutcome::Recorded)
            }
            // What an earlier try has undone is gone.
            Ok(Finished::Refused(None)) if matches!(how, EndRequest::Release(Release { undo: true, .. })) => {
                Some(FinishOutcome::Recorded)
            }
            Ok(Finished::Refused(record)) => {
                if !self.work.is_lost() {
                    engine.report(&Event::ClaimLost { key, attempt: self.granted.attempt });
                }
                Some(FinishOutcome::Lost(record))
            }
            Err(error) => {
                let (verb, retried) = (how.verb(), error.is_temporary());
                engine.report(&self.failed(how, &error, retried));
                if retried {
                    return None;
                }
                engine.report(&Event::NotRecorded { key, verb });
                Some(FinishOutcome::Unrecorded)
            }
        }
    }

    /// Spawns what is left of the end, with a heartbeat of its own, as a background task of the same party.
    fn go_on_in_background(self, mut how: EndRequest) {
        let (engine, key, claim) = (self.engine.clone(), self.key.clone(), self.claim.clone());
        let (granted, renewed, verb) = (self.granted, self.renewed, how.verb());
        let not_recorded = {
            let (engine, key) = (self.engine.clone(), self.key.clone());
            move |_| engine.report(&Event::NotRecorded { key: &key, verb })
        };
        let go_on = async move {
            let work = Work::new();
            let mut run = Run { ending: true, ..Run::new(&engine, &work, &key, &claim, granted, renewed) };
            let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
            loop {
                run.hold(pin!(sleep(backoff.pause()))).await;
                if run.try_once(&mut how, Instant::now(), engine.store_timeout).await.is_some() {
                    return;
                }
            }
        };
        match (self.work.runtime(), self.work.claim()) {
            (Some(runtime), Some((key, party))) => {
                self.engine.background_tasks.spawn(runtime, party.bucket(key), go_on, not_recorded);
            }
            _ => self.engine.report(&Event::NotRecorded { key: self.key, verb }),
        }
    }
}
