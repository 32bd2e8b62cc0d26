//! A future that may be ready from the start, so that a store in memory allocates nothing for a call.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use crate::value::StoreError;

/// The future of a [`Store`](super::Store)'s answer.
///
/// A store that answers at once uses [`ready`](Self::ready), which does not allocate.
#[must_use = "futures do nothing unless polled"]
pub struct StoreFuture<'a, T>(Inner<'a, T>);

enum Inner<'a, T> {
    Ready(Option<Result<T, StoreError>>),
    Boxed(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>),
}

impl<'a, T> StoreFuture<'a, T> {
    /// Creates a future that is ready with an answer.
    pub fn ready(answer: Result<T, StoreError>) -> Self {
        Self(Inner::Ready(Some(answer)))
    }

    /// Creates a future from another one, whose output is the answer.
    pub fn new(answer: impl Future<Output = Result<T, StoreError>> + Send + 'a) -> Self {
        Self(Inner::Boxed(Box::pin(answer)))
    }
}

impl<T> StoreFuture<'_, T> {
    /// Returns the answer if it is there; `None` if it has to be awaited.
    pub fn into_ready(self) -> Option<Result<T, StoreError>> {
        match self.0 {
            Inner::Ready(answer) => answer,
            Inner::Boxed(_) => None,
        }
    }
}

#[cfg(feature = "sealed")]
impl<'a, T: Send + Unpin + 'a> StoreFuture<'a, T> {
    /// Converts the answer. An answer that is there is converted at once.
    pub(in crate::store) fn map<U>(self, convert: impl FnOnce(T) -> U + Send + 'a) -> StoreFuture<'a, U> {
        match self.0 {
            Inner::Ready(Some(answer)) => StoreFuture::ready(answer.map(convert)),
            Inner::Ready(None) => StoreFuture(Inner::Ready(None)),
            Inner::Boxed(future) => StoreFuture::new(async move { future.await.map(convert) }),
        }
    }
}

impl<T: Unpin> Future for StoreFuture<'_, T> {
    type Output = Result<T, StoreError>;

    /// # Panics
    ///
    /// Panics if the future is polled again after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.get_mut().0 {
            Inner::Ready(answer) => match answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => panic!("`StoreFuture` polled after it was ready"),
            },
            Inner::Boxed(future) => future.as_mut().poll(cx),
        }
    }
}

impl<T> fmt::Debug for StoreFuture<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Inner::Ready(_) => "StoreFuture(ready)",
            Inner::Boxed(_) => "StoreFuture(..)",
        })
    }
}
