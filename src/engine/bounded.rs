use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Sleep, sleep};

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
    timer: Option<Pin<Box<Sleep>>>,
}

impl<T: Unpin> Future for Bounded<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(answer) = Pin::new(&mut this.answer).poll(cx) {
            return Poll::Ready(answer);
        }
        let timer = this.timer.get_or_insert_with(|| Box::pin(sleep(this.limit)));
        let late = || Err(StoreError::new(StoreErrorKind::Timeout, "the store did not answer in time"));
        timer.as_mut().poll(cx).map(|()| late())
    }
}
