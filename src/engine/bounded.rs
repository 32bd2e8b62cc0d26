use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    time::Duration,
};

use crate::{
    store::StoreFuture,
    value::{StoreError, StoreErrorKind},
};

/// Waits for a store's answer, but not for ever. An answer that is there at once costs no timer.
pub(super) async fn bounded<T: Unpin>(mut answer: StoreFuture<'_, T>, limit: Duration) -> Result<T, StoreError> {
    let at_once = poll_fn(|cx| {
        Poll::Ready(match Pin::new(&mut answer).poll(cx) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    });
    if let Some(answer) = at_once.await {
        return answer;
    }
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(StoreError::new(StoreErrorKind::Timeout, "the store did not answer in time")),
    }
}
