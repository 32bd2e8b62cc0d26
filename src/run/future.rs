use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::RunError;
use crate::engine::Task;

/// The future of the value of a [`run`](crate::Once::run).
///
/// # Cancellation
///
/// If the future is dropped before the key is claimed, nothing has happened. If it is dropped after that, the rest of
/// the work is spawned on the Tokio runtime in which `run` was called, and is finished there. The next try receives its
/// value. [`Once::cancel_on_disconnect`](crate::Once::cancel_on_disconnect) drops the work instead, and its claim
/// lapses.
#[must_use = "futures do nothing unless polled"]
pub struct RunFuture<T: 'static, E: 'static>(Task<Result<T, RunError<E>>>);

impl<T, E> RunFuture<T, E> {
    pub(super) fn new(task: Task<Result<T, RunError<E>>>) -> Self {
        Self(task)
    }
}

impl<T, E> Future for RunFuture<T, E> {
    type Output = Result<T, RunError<E>>;

    /// # Panics
    ///
    /// Panics if the function panics, after its claim has been ended, or if the future is polled after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T, E> fmt::Debug for RunFuture<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFuture").finish_non_exhaustive()
    }
}
