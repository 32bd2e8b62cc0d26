use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};
use tower_idempotency::service::{RequestBody, ResponseBody, ResponseFuture};
use tower_service::Service;

use super::GrpcBody;
use crate::{
    BoxError,
    answer::{AnswerBody, Handler},
    codes::GRPC_STATUS,
    method::is_grpc,
    refusal::Refused,
    request::CallBody,
};

/// What belongs at the end of an answer that has a message.
const OF_THE_END: [HeaderName; 3] =
    [GRPC_STATUS, HeaderName::from_static("grpc-message"), HeaderName::from_static("grpc-status-details-bin")];

pin_project! {
    /// The response future of [`GrpcIdempotency`](super::GrpcIdempotency).
    ///
    /// # Cancellation
    ///
    /// As that of [`tower_idempotency`]: what was claimed goes on in the background and is recorded. The client's own
    /// deadline has the same effect.
    #[must_use = "futures do nothing unless polled"]
    pub struct GrpcFuture<S, B, R>
    where
        Handler<S>: Service<Request<RequestBody<CallBody<B>>>>,
        <Handler<S> as Service<Request<RequestBody<CallBody<B>>>>>::Error: 'static,
        R: Body<Data = Bytes>,
        R: 'static,
    {
        #[pin]
        core: ResponseFuture<Handler<S>, CallBody<B>, AnswerBody<R>>,
        is_protected: bool,
        deadline: Option<Pin<Box<Sleep>>>,
    }
}

impl<S, B, R> GrpcFuture<S, B, R>
where
    Handler<S>: Service<Request<RequestBody<CallBody<B>>>>,
    R: Body<Data = Bytes>,
{
    /// Wraps the future of a call that is left alone.
    pub(super) fn alone(core: ResponseFuture<Handler<S>, CallBody<B>, AnswerBody<R>>) -> Self {
        Self { core, is_protected: false, deadline: None }
    }

    /// Wraps the future of a call that is protected if it has a key.
    pub(super) fn protected(
        core: ResponseFuture<Handler<S>, CallBody<B>, AnswerBody<R>>,
        deadline: Option<Duration>,
    ) -> Self {
        Self { core, is_protected: true, deadline: deadline.map(|time| Box::pin(sleep(time))) }
    }
}

impl<S, B, R> Future for GrpcFuture<S, B, R>
where
    S: Service<Request<RequestBody<CallBody<B>>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    type Output = Result<Response<GrpcBody<R>>, S::Error>;

    /// # Panics
    ///
    /// Panics if the inner service panics, after its claim has been ended, or if it is polled after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(ended) = this.core.poll(cx) {
            return Poll::Ready(ended.map(|response| {
                if *this.is_protected { of_grpc(response) } else { response.map(|body| GrpcBody::new(body, None)) }
            }));
        }
        match this.deadline.as_mut().map(|deadline| deadline.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => Poll::Ready(Ok(Refused::by_deadline().answer(None))),
            _ => Poll::Pending,
        }
    }
}

/// Gives an answer the form that gRPC has: the status of HTTP is a success, and that of the call is at the end.
fn of_grpc<R: Body<Data = Bytes>>(mut response: Response<ResponseBody<AnswerBody<R>>>) -> Response<GrpcBody<R>> {
    if let Some(refused) = response.extensions_mut().remove::<Refused>() {
        refused.add_retry_info(response.headers_mut());
    }
    let mut trailers = None;
    if is_grpc(response.headers()) {
        *response.status_mut() = StatusCode::OK;
        if response.headers().contains_key(&GRPC_STATUS) && !response.body().is_end_stream() {
            trailers = Some(Box::new(take_end(response.headers_mut())));
        }
    }
    response.map(|body| GrpcBody::new(body, trailers))
}

/// Takes what belongs at the end out of a head.
fn take_end(headers: &mut HeaderMap) -> HeaderMap {
    OF_THE_END.into_iter().filter_map(|name| headers.remove(&name).map(|value| (name, value))).collect()
}

impl<S, B, R> std::fmt::Debug for GrpcFuture<S, B, R>
where
    Handler<S>: Service<Request<RequestBody<CallBody<B>>>>,
    R: Body<Data = Bytes>,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrpcFuture").finish_non_exhaustive()
    }
}
