//! The future of a request: it reads and decides, and boxes only what runs.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode, request::Parts};
use pin_project_lite::pin_project;
use tower::Service;

use super::{
    body::{Body, Collector},
    identity::{Claimant, Name, fingerprint},
    run::{Detached, Owned, Run},
    store::{Claimed, Store},
};

pin_project! {
    #[project = FutureProjection]
    pub enum IdealFuture<S, B, R>
    where
        S: Service<Request<Body<B>>, Response = Response<R>>,
        S::Future: Send,
        S::Future: 'static,
        S::Error: Send,
        S::Error: 'static,
        R: Send,
        R: 'static,
    {
        Passing { #[pin] inner: S::Future },
        Deciding { #[pin] body: B, collector: Collector, asked: Option<(Parts, S)>, store: Option<Arc<Store>> },
        Running { run: Detached<R, S::Error> },
    }
}

impl<S, B, R> Future for IdealFuture<S, B, R>
where
    S: Service<Request<Body<B>>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: http_body::Body<Data = Bytes>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
{
    type Output = Result<Response<Body<R>>, S::Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let run = match self.as_mut().project() {
            FutureProjection::Passing { inner } => {
                return Poll::Ready(ready!(inner.poll(cx)).map(|answer| answer.map(|inner| Body::Passed { inner })));
            }
            FutureProjection::Running { run } => return run.poll(cx),
            FutureProjection::Deciding { body, collector, asked, store } => {
                let body = ready!(collector.poll(body, cx));
                let (Some((head, inner)), Some(store)) = (asked.take(), store.take()) else { polled_after_end() };
                let Ok(body) = body else { return Poll::Ready(Ok(refuse(StatusCode::PAYLOAD_TOO_LARGE))) };
                match decide(head, inner, body, store) {
                    Decision::Run(run) => run,
                    Decision::Answer(answer) => return Poll::Ready(Ok(answer)),
                }
            }
        };
        self.set(Self::Running { run });
        match self.project() {
            FutureProjection::Running { run } => run.poll(cx),
            _ => polled_after_end(),
        }
    }
}

enum Decision<R: Send + 'static, E: Send + 'static> {
    Run(Detached<R, E>),
    Answer(Response<Body<R>>),
}

#[inline]
fn decide<S, B, R>(head: Parts, mut inner: S, body: Bytes, store: Arc<Store>) -> Decision<R, S::Error>
where
    S: Service<Request<Body<B>>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    R: http_body::Body<Data = Bytes> + Send + 'static,
{
    let Some(name) = Name::of(&head) else { return Decision::Answer(refuse(StatusCode::BAD_REQUEST)) };
    let claimant = Claimant::next();
    let place = match store.claim(&name, &fingerprint(&head, &body), claimant) {
        Claimed::Granted(place) => place,
        Claimed::Kept(head, data) => {
            let mut answer = Response::new(Body::Whole { data });
            *answer.status_mut() = head.status;
            *answer.headers_mut() = head.headers.clone();
            return Decision::Answer(answer);
        }
        Claimed::Running => return Decision::Answer(refuse(StatusCode::CONFLICT)),
        Claimed::Mismatch => return Decision::Answer(refuse(StatusCode::UNPROCESSABLE_ENTITY)),
        Claimed::Full => return Decision::Answer(refuse(StatusCode::SERVICE_UNAVAILABLE)),
    };
    let owned = Owned::new(store, place, claimant);
    let called = catch_unwind(AssertUnwindSafe(|| inner.call(Request::from_parts(head, Body::Whole { data: body }))));
    match called {
        Ok(handling) => Decision::Run(Detached::new(Box::pin(Run::new(handling, owned)))),
        Err(panic) => {
            drop(owned);
            resume_unwind(panic)
        }
    }
}

#[cold]
pub(super) fn refuse<R>(status: StatusCode) -> Response<Body<R>> {
    let mut answer = Response::new(Body::Whole { data: Bytes::new() });
    *answer.status_mut() = status;
    answer
}

#[cold]
pub(super) fn polled_after_end() -> ! {
    panic!("polled after it was ready")
}
