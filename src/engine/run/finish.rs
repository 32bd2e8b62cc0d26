//! The end of a claim.
//!
//! `finish` tries at once, then again with growing pauses within the store timeout, and then hands the rest to the
//! background while the lease can be renewed. Its result says what the client may receive: the value of the work if it
//! is recorded or if nothing contradicts it, and what the record says if the claim was lost.
//!
//! Settling may be repeated safely: the store compares the claimant, and answers "done already" to a second try of the
//! same one.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::{Run, end_request::EndRequest, heartbeat::Heartbeat};
use crate::{
    engine::{
        Engine,
        timer::{Timer, later, too_late},
    },
    store::{Finished, StoreFuture},
    value::{Backoff, Event, Record, Release, StoreError, StoreErrorKind},
};

/// How a claim ended.
pub(super) enum FinishOutcome {
    /// The end is recorded.
    Recorded,
    /// The store does not take it for now; nothing is known that contradicts the value of the work.
    Unrecorded,
    /// The claim was another's by then: what the record says, if there is one.
    Lost(Option<Box<Record>>),
    /// What was done in the run's transaction is undone, and the claim with it.
    RolledBack,
    /// Whether the run's transaction was committed is not known.
    Unknown,
}

/// What came of a try that does not wait.
pub(super) enum Tried {
    Ended(FinishOutcome),
    /// The store failed, and is to be asked again.
    Failed,
    /// The store does not answer at once.
    NotYet,
}

impl Run {
    /// Ends the claim in a store that answers at once.
    pub(super) fn try_now(&self, engine: &Engine, end: &mut EndRequest) -> Tried {
        loop {
            let Some(answer) = end.send(engine, &self.state).into_ready() else { return Tried::NotYet };
            if let Some(answer) = self.unless_too_large(engine, end, answer) {
                return self.outcome_of(engine, end, answer).map_or(Tried::Failed, Tried::Ended);
            }
        }
    }

    /// Ends the claim.
    ///
    /// Tries for the store timeout; after that, or without a client, goes on for as long as a background task may.
    pub(super) async fn finish(
        mut self,
        engine: &Arc<Engine>,
        mut end: EndRequest,
        start: Instant,
        failed: bool,
    ) -> FinishOutcome {
        if let Some(transaction) = self.transaction.take() {
            return engine.end_transaction(&self.state, transaction, end).await;
        }
        if !failed && let Some(ending) = self.try_once(engine, &mut end, start, engine.store_timeout).await {
            return ending;
        }
        Box::pin(self.retry(engine, end, start)).await
    }

    /// The store has failed once.
    async fn retry(mut self, engine: &Arc<Engine>, mut end: EndRequest, start: Instant) -> FinishOutcome {
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        loop {
            let mut left = engine.store_timeout.saturating_sub(start.elapsed() + backoff.coming());
            if self.state.is_detached() {
                // No client waits for it, and the place that it has is one in the background.
                left = engine.store_timeout;
            }
            if left.is_zero() {
                break;
            }
            self.hold(engine, pin!(sleep(backoff.pause()))).await;
            if let Some(ending) = self.try_once(engine, &mut end, Instant::now(), left).await {
                return ending;
            }
        }
        if self.state.is_lost() {
            // There is nothing of this run's left to end.
            return FinishOutcome::Lost(None);
        }
        self.go_on_in_background(engine, end);
        FinishOutcome::Unrecorded
    }

    /// Tries for `limit` from `start` on. `None` means: try again.
    async fn try_once(
        &mut self,
        engine: &Arc<Engine>,
        end: &mut EndRequest,
        start: Instant,
        mut limit: Duration,
    ) -> Option<FinishOutcome> {
        let state = self.state.clone();
        loop {
            let answer = self.answer(engine, end.send(engine, &state), limit).await;
            if let Some(answer) = self.unless_too_large(engine, end, answer) {
                return self.outcome_of(engine, end, answer);
            }
            limit = limit.saturating_sub(start.elapsed());
        }
    }

    /// Awaits the store's answer for `limit` at most, and renews the lease meanwhile. One timer serves for both until the
    /// first renewal is due.
    async fn answer<T: Unpin>(
        &mut self,
        engine: &Arc<Engine>,
        mut answer: StoreFuture<'_, T>,
        limit: Duration,
    ) -> Result<T, StoreError> {
        let mut deadline = None;
        let mut is_set = false;
        poll_fn(|cx| {
            if let Poll::Ready(answer) = Pin::new(&mut answer).poll(cx) {
                return Poll::Ready(answer);
            }
            let deadline = *deadline.get_or_insert_with(|| later(limit));
            if self.is_late(engine, deadline, &mut is_set, cx) { Poll::Ready(Err(too_late())) } else { Poll::Pending }
        })
        .await
    }

    /// Returns whether the deadline has passed, and renews the lease if it is time.
    fn is_late(&mut self, engine: &Arc<Engine>, deadline: Instant, is_set: &mut bool, cx: &mut Context<'_>) -> bool {
        loop {
            let due = if self.heartbeat.is_none() { self.renewal_due() } else { None };
            let wake = due.map_or(deadline, |due| due.min(deadline));
            if !*is_set {
                Timer::set(&mut self.timer, wake);
                *is_set = true;
            }
            if self.timer.as_mut().is_none_or(|timer| timer.poll(cx).is_pending()) {
                break;
            }
            if Instant::now() >= deadline {
                return true;
            }
            *is_set = false;
            if let Some(due) = due {
                self.heartbeat = Some(Box::new(Heartbeat::new(None, due)));
            }
        }
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.poll(engine, &self.state, cx);
        }
        false
    }

    /// Passes the store's answer on, unless the answer to be kept is too large for it: that is left out then, since that
    /// the operation ran is short, and has to be recorded.
    fn unless_too_large(
        &self,
        engine: &Engine,
        end: &mut EndRequest,
        answer: Result<Finished, StoreError>,
    ) -> Option<Result<Finished, StoreError>> {
        match answer {
            Err(error) if error.kind() == StoreErrorKind::TooLarge && end.leave_answer_out() => {
                self.report_failure(engine, end, &error, true);
                None
            }
            answer => Some(answer),
        }
    }

    /// Reports a store that failed at the end of the run.
    fn report_failure(&self, engine: &Engine, end: &EndRequest, error: &StoreError, retried: bool) {
        engine.report(&Event::StoreFailed { key: &self.state.key, verb: end.verb(), error, retried });
    }

    /// Reports the store's answer, and returns the ending; `None` means: try again.
    fn outcome_of(
        &self,
        engine: &Engine,
        end: &EndRequest,
        answer: Result<Finished, StoreError>,
    ) -> Option<FinishOutcome> {
        let key = &self.state.key;
        match answer {
            Ok(Finished::Done | Finished::AlreadyDone) => {
                end.report(engine, &self.state);
                Some(FinishOutcome::Recorded)
            }
            // What an earlier try has undone is gone.
            Ok(Finished::Refused(None)) if matches!(end, EndRequest::Release(Release { undo: true, .. })) => {
                Some(FinishOutcome::Recorded)
            }
            Ok(Finished::Refused(record)) => {
                if !self.state.is_lost() {
                    engine.report(&Event::ClaimLost { key, attempt: self.state.granted.attempt });
                }
                Some(FinishOutcome::Lost(record))
            }
            Err(error) => {
                let (verb, retried) = (end.verb(), error.is_temporary());
                self.report_failure(engine, end, &error, retried);
                if retried {
                    return None;
                }
                engine.report(&Event::NotRecorded { key, verb });
                Some(FinishOutcome::Unrecorded)
            }
        }
    }

    /// Spawns what is left of the end as a background task of the same party. The heartbeat goes along.
    fn go_on_in_background(mut self, engine: &Arc<Engine>, mut end: EndRequest) {
        let (state, verb, engine) = (self.state.clone(), end.verb(), engine.clone());
        let report = {
            let (engine, state) = (engine.clone(), self.state.clone());
            move || engine.report(&Event::NotRecorded { key: &state.key, verb })
        };
        state.capture_runtime();
        let Some(runtime) = state.runtime() else { return report() };
        let background_tasks = engine.background_tasks.clone();
        let go_on = async move {
            let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
            loop {
                self.hold(&engine, pin!(sleep(backoff.pause()))).await;
                if self.try_once(&engine, &mut end, Instant::now(), engine.store_timeout).await.is_some() {
                    return;
                }
            }
        };
        background_tasks.spawn(runtime, state.bucket(), go_on, move |_, _| report());
    }
}
