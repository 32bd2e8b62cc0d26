use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::Consumed;
use crate::engine::Task;

type ConsumerResult<T, E> = Result<Consumed<T, E>, E>;

/// The future of the outcome of a message.
///
/// # Cancellation
///
/// If the future is dropped before the key is claimed, nothing has happened. If it is dropped after that, the rest of
/// the work is spawned on the Tokio runtime in which the service was called, and is finished there. Its outcome is
/// recorded, and a redelivery of the message is found to be done. A layer with
/// [`cancel_on_disconnect`](crate::ConsumerLayer::cancel_on_disconnect) drops the work instead, and its claim lapses.
#[must_use = "futures do nothing unless polled"]
pub struct ConsumerFuture<T: 'static, E: 'static>(ConsumerFutureKind<T, E>);

enum ConsumerFutureKind<T: 'static, E: 'static> {
    Ready(Option<Consumed<T, E>>),
    Passed(Pin<Box<dyn Future<Output = ConsumerResult<T, E>> + Send>>),
    Keyed(Task<ConsumerResult<T, E>>),
}

// Neither variant is ever pinned: the task boxes what has to be pinned.
impl<T, E> Unpin for ConsumerFuture<T, E> {}

impl<T, E> ConsumerFuture<T, E> {
    pub(super) fn ready(consumed: Consumed<T, E>) -> Self {
        Self(ConsumerFutureKind::Ready(Some(consumed)))
    }

    /// Wraps the work of a layer that is switched off.
    pub(super) fn pass(work: impl Future<Output = ConsumerResult<T, E>> + Send + 'static) -> Self {
        Self(ConsumerFutureKind::Passed(Box::pin(work)))
    }

    pub(super) fn task(task: Task<ConsumerResult<T, E>>) -> Self {
        Self(ConsumerFutureKind::Keyed(task))
    }
}

impl<T, E> Future for ConsumerFuture<T, E> {
    type Output = ConsumerResult<T, E>;

    /// # Panics
    ///
    /// Panics if the inner service panics, after its claim has been ended, or if the future is polled after it was
    /// ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            ConsumerFutureKind::Ready(consumed) => match consumed.take() {
                Some(consumed) => Poll::Ready(Ok(consumed)),
                None => panic!("`ConsumerFuture` polled after it was ready"),
            },
            ConsumerFutureKind::Passed(work) => work.as_mut().poll(cx),
            ConsumerFutureKind::Keyed(task) => Pin::new(task).poll(cx),
        }
    }
}

impl<T, E> fmt::Debug for ConsumerFuture<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsumerFuture").finish_non_exhaustive()
    }
}
