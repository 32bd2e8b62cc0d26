use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_idempotency::Operation;

use super::{AnswerBody, reading::Reading};
use crate::{call::Call, codes, method::is_grpc};

pin_project! {
    /// The future of [`Handler`](super::Handler).
    #[must_use = "futures do nothing unless polled"]
    pub struct HandlerFuture<F, R> {
        #[pin]
        future: F,
        run: Option<(Arc<Call>, Operation)>,
        reading: Option<Reading<R>>,
    }
}

impl<F, R> HandlerFuture<F, R> {
    pub(super) fn new(future: F, run: Option<(Arc<Call>, Operation)>) -> Self {
        Self { future, run, reading: None }
    }
}

impl<F, R, E> Future for HandlerFuture<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body<Data = Bytes>,
{
    type Output = Result<Response<AnswerBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Some(reading) = this.reading {
            return reading.poll(cx).map(Ok);
        }
        let response = ready!(this.future.poll(cx))?;
        let Some((call, operation)) = this.run.take() else { return Poll::Ready(Ok(response.map(AnswerBody::passed))) };
        match begin(response, &call, operation) {
            Begun::Answer(response) => Poll::Ready(Ok(response)),
            Begun::Reading(reading) => this.reading.insert(*reading).poll(cx).map(Ok),
        }
    }
}

/// What follows from the head of an answer.
enum Begun<R: Body> {
    Answer(Response<AnswerBody<R>>),
    Reading(Box<Reading<R>>),
}

/// Looks at the head of an answer.
fn begin<R: Body<Data = Bytes>>(mut response: Response<R>, call: &Call, operation: Operation) -> Begun<R> {
    if !is_grpc(response.headers()) {
        return Begun::Answer(response.map(AnswerBody::passed));
    }
    // An answer of a head only, which tonic gives for an error.
    let code = codes::of(response.headers());
    if code.is_none() && call.answers_stream {
        operation.stream();
        return Begun::Answer(response.map(AnswerBody::passed));
    }
    if code.is_none() && !response.body().is_end_stream() {
        return Begun::Reading(Box::new(Reading::new(response, &call.settings, operation)));
    }
    *response.status_mut() = code.map_or(StatusCode::INTERNAL_SERVER_ERROR, codes::counts_as);
    Begun::Answer(response.map(AnswerBody::passed))
}

impl<F, R> std::fmt::Debug for HandlerFuture<F, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HandlerFuture").finish_non_exhaustive()
    }
}
