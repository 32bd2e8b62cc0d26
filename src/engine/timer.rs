//! The time limit of a call to the store.
//!
//! The timer is created only if the store does not answer at the first poll, which spares it for a memory store, and is
//! used again by the later calls of the same run. It is not counted by Tokio's cooperative budget: a store future that
//! uses up the budget at each poll would otherwise keep the timer from firing.

use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    task::coop::unconstrained,
    time::{Instant, Sleep, sleep_until},
};

use crate::{
    store::StoreFuture,
    value::{StoreError, StoreErrorKind},
};

/// Returns the moment that is `time` from now. A time without an end ends in thirty years.
pub(super) fn later(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or_else(|| now + Duration::from_secs(30 * 365 * 24 * 60 * 60))
}

/// A timer that can be set again.
pub(crate) struct Timer(Pin<Box<Sleep>>);

impl Timer {
    /// Sets the timer, which is created if there is none yet.
    pub(super) fn set(timer: &mut Option<Self>, at: Instant) -> &mut Self {
        match timer {
            Some(timer) => {
                timer.0.as_mut().reset(at);
                timer
            }
            none => none.insert(Self(Box::pin(sleep_until(at)))),
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        pin!(unconstrained(self.0.as_mut())).poll(cx)
    }
}

/// Waits for a store's answer, but not for ever.
pub(super) async fn bounded<T: Unpin>(answer: StoreFuture<'_, T>, limit: Duration) -> Result<T, StoreError> {
    bounded_by(&mut None, answer, limit).await
}

/// Waits as [`bounded`] does, with a timer that is used again.
pub(super) fn bounded_by<'a, T: Unpin>(
    timer: &'a mut Option<Timer>,
    answer: StoreFuture<'a, T>,
    limit: Duration,
) -> Bounded<'a, T> {
    Bounded { answer, limit, timer, is_set: false }
}

/// A store's answer, or that it did not come in time. One that is there at once costs no timer.
pub(super) struct Bounded<'a, T> {
    answer: StoreFuture<'a, T>,
    limit: Duration,
    timer: &'a mut Option<Timer>,
    is_set: bool,
}

impl<T: Unpin> Future for Bounded<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(answer) = Pin::new(&mut this.answer).poll(cx) {
            return Poll::Ready(answer);
        }
        if !this.is_set {
            Timer::set(this.timer, later(this.limit));
            this.is_set = true;
        }
        let fired = this.timer.as_mut().map_or(Poll::Pending, |timer| timer.poll(cx));
        fired.map(|()| Err(too_late()))
    }
}

/// Returns the error of a call that took longer than it may.
pub(super) fn too_late() -> StoreError {
    StoreError::new(StoreErrorKind::Timeout, "the store did not answer in time")
}

#[cfg(test)]
mod tests {
    use tokio::task::coop::consume_budget;

    use super::*;

    #[tokio::test]
    async fn an_answer_that_uses_up_its_turns_is_late_all_the_same() {
        let busy = async {
            loop {
                consume_budget().await;
            }
        };
        let answer: Result<(), _> = bounded(StoreFuture::new(busy), Duration::from_millis(20)).await;
        assert_eq!(answer.unwrap_err().kind(), StoreErrorKind::Timeout);
    }
}
