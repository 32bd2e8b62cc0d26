use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tower_idempotency::service::ResponseBody;

use crate::answer::AnswerBody;

pin_project! {
    /// The response body that a client receives.
    pub struct GrpcBody<R>
    where
        R: Body<Data = Bytes>,
    {
        #[pin]
        body: ResponseBody<AnswerBody<R>>,
        // They follow the body, if it has none.
        trailers: Option<Box<HeaderMap>>,
    }
}

impl<R: Body<Data = Bytes>> GrpcBody<R> {
    pub(super) fn new(body: ResponseBody<AnswerBody<R>>, trailers: Option<Box<HeaderMap>>) -> Self {
        Self { body, trailers }
    }
}

/// An empty body.
impl<R: Body<Data = Bytes>> Default for GrpcBody<R> {
    fn default() -> Self {
        Self::new(ResponseBody::default(), None)
    }
}

impl<R: Body<Data = Bytes>> Body for GrpcBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        let this = self.project();
        let polled = this.body.poll_frame(cx);
        match (&polled, this.trailers.take()) {
            (Poll::Ready(None), Some(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(*trailers)))),
            (_, trailers) => {
                *this.trailers = trailers;
                polled
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.trailers.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        if self.trailers.is_none() {
            return hint;
        }
        // A server that knows the length leaves trailers out.
        let mut without_end = SizeHint::new();
        without_end.set_lower(hint.lower());
        without_end
    }
}

impl<R: Body<Data = Bytes>> std::fmt::Debug for GrpcBody<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GrpcBody").finish_non_exhaustive()
    }
}
