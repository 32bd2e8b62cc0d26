//! The response future. It names the pass-through case without a box, so that an unprotected request costs no
//! allocation.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;

use crate::token::IssuedFlag;
use crate::{body::ResponseBody, engine::Task};

type ResponseResult<R, E> = Result<Response<ResponseBody<R>>, E>;

pin_project! {
    /// The response future of [`Idempotency`](super::Idempotency).
    ///
    /// # Cancellation
    ///
    /// If it is dropped before the key is claimed, nothing has happened, and nothing is left behind. If it is dropped
    /// after that, the rest of the work is spawned on the Tokio runtime that it was called in and finished there, so
    /// that its outcome is recorded: the client left, but its operation goes on. A layer that [cancels on disconnect]
    /// drops the work instead, and its claim lapses.
    ///
    /// A request that the layer does not protect is dropped with its future, like that of the inner service.
    ///
    /// [cancels on disconnect]: crate::IdempotencyLayer::cancel_on_disconnect
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, R, E>
    where
        R: Body,
        R: 'static,
        E: 'static,
    {
        #[pin]
        kind: ResponseFutureKind<F, R, E>,
    }
}

pin_project! {
    /// The way that a request takes.
    #[project = ResponseFutureKindProjected]
    enum ResponseFutureKind<F, R, E>
    where
        R: Body,
        R: 'static,
        E: 'static,
    {
        Pass { #[pin] inner: F, issued: Option<IssuedFlag> },
        Ready { response: Option<Response<ResponseBody<R>>> },
        Keyed { task: Task<ResponseResult<R, E>> },
    }
}

impl<F, R: Body, E> ResponseFuture<F, R, E> {
    /// Creates the future of a request that is not protected. `issued` states whether the answer has a token in it.
    pub(super) fn pass(inner: F, issued: Option<IssuedFlag>) -> Self {
        Self { kind: ResponseFutureKind::Pass { inner, issued } }
    }

    /// Creates the future of a response that exists already.
    pub(super) fn ready(response: Response<ResponseBody<R>>) -> Self {
        Self { kind: ResponseFutureKind::Ready { response: Some(response) } }
    }

    /// Creates the future of a request that goes through the steps.
    pub(super) fn task(task: Task<ResponseResult<R, E>>) -> Self {
        Self { kind: ResponseFutureKind::Keyed { task } }
    }
}

impl<F, R, E> Future for ResponseFuture<F, R, E>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = ResponseResult<R, E>;

    /// # Panics
    ///
    /// Panics if the inner service panics, after its claim has been ended, or if it is polled after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().kind.project() {
            ResponseFutureKindProjected::Pass { inner, issued } => {
                Poll::Ready(ready!(inner.poll(cx)).map(|mut response| {
                    if let Some(issued) = issued {
                        issued.mark(response.headers_mut());
                    }
                    response.map(ResponseBody::passed)
                }))
            }
            ResponseFutureKindProjected::Ready { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(response)),
                None => panic!("`ResponseFuture` polled after it was ready"),
            },
            ResponseFutureKindProjected::Keyed { task } => Pin::new(task).poll(cx),
        }
    }
}

impl<F, R: Body, E> fmt::Debug for ResponseFuture<F, R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
