//! The time limit of a call to the store.
//!
//! The timer is created only if the store does not answer at the first poll, which spares it for a memory store. It is
//! not counted by Tokio's cooperative budget: a store future that uses up the budget at each poll would otherwise keep
//! the timer from firing.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    task::coop::{Unconstrained, unconstrained},
    time::{Sleep, sleep},
};

use crate::{
    store::StoreFuture,
    value::{StoreError, StoreErrorKind},
};

/// Waits for a store's answer, but not for ever.
pub(super) fn bounded<T: Unpin>(answer: StoreFuture<'_, T>, limit: Duration) -> Bounded<'_, T> {
    Bounded { answer, limit, timer: None }
}

/// A store's answer, or that it did not come in time. One that is there at once costs no timer.
pub(super) struct Bounded<'a, T> {
    answer: StoreFuture<'a, T>,
    limit: Duration,
    /// It counts also in turns whose budget the answer has used up.
    timer: Option<Pin<Box<Unconstrained<Sleep>>>>,
}

impl<T: Unpin> Future for Bounded<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(answer) = Pin::new(&mut this.answer).poll(cx) {
            return Poll::Ready(answer);
        }
        let timer = this.timer.get_or_insert_with(|| Box::pin(unconstrained(sleep(this.limit))));
        let late = || Err(StoreError::new(StoreErrorKind::Timeout, "the store did not answer in time"));
        timer.as_mut().poll(cx).map(|()| late())
    }
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
