//! A layer of the same shape as the one that is measured, which does nothing: a service, a future and bodies of its own.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{Request, Response};
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

/// With settings that its services share: Axum clones a layer with each request, which is free only if it has none.
#[derive(Clone, Debug, Default)]
pub struct Nothing(Arc<Settings>);

#[derive(Debug, Default)]
struct Settings;

#[derive(Clone, Debug)]
pub struct NothingService<S> {
    inner: S,
    _settings: Arc<Settings>,
}

impl<S> Layer<S> for Nothing {
    type Service = NothingService<S>;

    fn layer(&self, inner: S) -> NothingService<S> {
        NothingService { inner, _settings: self.0.clone() }
    }
}

impl<S, B, R> Service<Request<B>> for NothingService<S>
where
    S: Service<Request<Body<B>>, Response = Response<R>>,
{
    type Response = Response<Body<R>>;
    type Error = S::Error;
    type Future = NothingFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        NothingFuture { inner: self.inner.call(request.map(|inner| Body { inner })) }
    }
}

pin_project! {
    #[derive(Debug)]
    pub struct NothingFuture<F> { #[pin] inner: F }
}

impl<F, R, E> Future for NothingFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<Body<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(ready!(self.project().inner.poll(cx)).map(|response| response.map(|inner| Body { inner })))
    }
}

pin_project! {
    #[derive(Debug)]
    pub struct Body<B> { #[pin] inner: B }
}

impl<B: http_body::Body> http_body::Body for Body<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.project().inner.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
