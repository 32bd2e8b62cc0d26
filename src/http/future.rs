//! The response future: a request in place, as long as nothing has to be kept for later.
//!
//! ```text
//! Passes      not protected: the inner service's future
//! Ready       answered by its head alone
//! Receives    the body is read; then the store is asked, if it answers at once ──► response, or a run
//! Task        a run, boxed; or what has to be awaited before one
//! ```
//!
//! A duplicate of a store that answers at once is answered here, before anything is boxed: a run's state, its box and
//! its counts exist only for what runs.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use super::{
    Exchange, PartialIdentity,
    decide::{Decision, Instead},
    receive::Incoming,
    respond::BoundedDrain,
};
use crate::{
    body::{BoxError, Collected, Collector, RequestBody, ResponseBody},
    engine::Task,
    token::IssuedFlag,
    value::Refusal,
};

type ResponseResult<R, E> = Result<Response<ResponseBody<R>>, E>;

pin_project! {
    /// The response future of [`Idempotency`](super::Idempotency).
    ///
    /// # Cancellation
    ///
    /// If it is dropped before the key is claimed, nothing has happened, and nothing is left behind. If it is dropped
    /// after that, the rest of the work is spawned on the Tokio runtime that it was polled in and finished there, so
    /// that its outcome is recorded: the client left, but its operation goes on. A layer that [cancels on disconnect]
    /// drops the work instead, and its claim lapses.
    ///
    /// A request that the layer does not protect is dropped with its future, like that of the inner service.
    ///
    /// [cancels on disconnect]: crate::IdempotencyLayer::cancel_on_disconnect
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, B, R>
    where
        S: Service<Request<RequestBody<B>>>,
        S::Error: 'static,
        R: Body,
        R: 'static,
    {
        #[pin]
        kind: ResponseFutureKind<S, B, R>,
    }
}

pin_project! {
    /// The way that a request takes.
    #[project = ResponseFutureKindProjected]
    enum ResponseFutureKind<S, B, R>
    where
        S: Service<Request<RequestBody<B>>>,
        S::Error: 'static,
        R: Body,
        R: 'static,
    {
        Passes { #[pin] inner: S::Future, issued: Option<IssuedFlag> },
        Ready { response: Option<Response<ResponseBody<R>>> },
        Receives { #[pin] body: B, collector: Collector, receiving: Option<Receiving<S>>, refused: Option<Refused> },
        Task { task: Task<ResponseResult<R, S::Error>> },
    }
}

/// A request whose body is being read.
struct Receiving<S> {
    exchange: Arc<Exchange>,
    service: S,
    parts: Parts,
    subject: PartialIdentity,
}

/// A request whose body could not be read, while the rest of it is drained.
type Refused = Box<(Refusal, BoundedDrain)>;

impl<S, B, R> ResponseFuture<S, B, R>
where
    S: Service<Request<RequestBody<B>>>,
    R: Body,
{
    /// Creates the future of a request that is not protected. `issued` states whether the answer has a token in it.
    pub(super) fn pass(inner: S::Future, issued: Option<IssuedFlag>) -> Self {
        Self { kind: ResponseFutureKind::Passes { inner, issued } }
    }

    /// Creates the future of a response that exists already.
    pub(super) fn ready(response: Response<ResponseBody<R>>) -> Self {
        Self { kind: ResponseFutureKind::Ready { response: Some(response) } }
    }

    /// Creates the future of a request whose body is read in place.
    #[inline]
    pub(super) fn receive(
        exchange: Arc<Exchange>,
        service: S,
        parts: Parts,
        body: B,
        subject: PartialIdentity,
    ) -> Self {
        let collector = Collector::new(exchange.policy.request_limit, exchange.body_patience());
        let receiving = Some(Receiving { exchange, service, parts, subject });
        Self { kind: ResponseFutureKind::Receives { body, collector, receiving, refused: None } }
    }

    /// Creates the future of what has to be awaited before the claim.
    pub(super) fn task(task: Task<ResponseResult<R, S::Error>>) -> Self {
        Self { kind: ResponseFutureKind::Task { task } }
    }
}

impl<S, B, R> Future for ResponseFuture<S, B, R>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    type Output = ResponseResult<R, S::Error>;

    /// # Panics
    ///
    /// Panics if the inner service panics, after its claim has been ended, or if it is polled after it was ready.
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut kind = self.project().kind;
        loop {
            let next = match kind.as_mut().project() {
                ResponseFutureKindProjected::Passes { inner, issued } => {
                    return Poll::Ready(ready!(inner.poll(cx)).map(|mut response| {
                        if let Some(issued) = issued {
                            issued.mark(response.headers_mut());
                        }
                        response.map(ResponseBody::passed)
                    }));
                }
                ResponseFutureKindProjected::Ready { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response)),
                    None => polled_after_ready(),
                },
                ResponseFutureKindProjected::Task { task } => return Pin::new(task).poll(cx),
                ResponseFutureKindProjected::Receives { mut body, collector, receiving, refused } => {
                    if refused.is_none() {
                        let read = ready!(collector.poll(body.as_mut(), cx));
                        match read {
                            Ok(whole) => decide(receiving, whole),
                            Err(error) => {
                                let Some(received) = receiving else { polled_after_ready() };
                                let (refusal, drains) = received.exchange.unreadable(&received.parts, error);
                                if !drains {
                                    return Poll::Ready(Ok(received.refuse(&refusal)));
                                }
                                *refused = Some(Box::new((refusal, BoundedDrain::new())));
                                continue;
                            }
                        }
                    } else {
                        if let Some(refused) = refused {
                            ready!(refused.1.poll(body, cx));
                        }
                        match (receiving.take(), refused.take()) {
                            (Some(received), Some(refused)) => return Poll::Ready(Ok(received.refuse(&refused.0))),
                            _ => polled_after_ready(),
                        }
                    }
                }
            };
            match next {
                AfterBody::Response(response) => return Poll::Ready(Ok(response)),
                AfterBody::Passes(inner) => kind.set(ResponseFutureKind::Passes { inner, issued: None }),
                AfterBody::Task(task) => kind.set(ResponseFutureKind::Task { task }),
            }
        }
    }
}

/// What follows once the body is there.
enum AfterBody<F, R: Body + 'static, E: 'static> {
    Response(Response<ResponseBody<R>>),
    Passes(F),
    Task(Task<ResponseResult<R, E>>),
}

impl<S> Receiving<S> {
    fn refuse<R: Body>(&self, refusal: &Refusal) -> Response<ResponseBody<R>> {
        self.exchange.refuse(Some(&self.parts), None, refusal)
    }
}

/// Names the operation of a request whose body is there, and claims it if the store answers at once.
///
/// The request stays where it is until it is known to run: most of what a duplicate costs would be moving it.
fn decide<S, B, R>(receiving: &mut Option<Receiving<S>>, whole: Collected) -> AfterBody<S::Future, R, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    let Some(Receiving { exchange, parts, subject, .. }) = receiving else { polled_after_ready() };
    let keyed = match exchange.claim(parts, &whole.data, subject, whole.data.len()) {
        Ok(Some(keyed)) => keyed,
        Ok(None) => {
            exchange.report_keyless(parts);
            return pass(receiving, whole);
        }
        Err(refusal) if subject.only_observed => {
            exchange.report_would_refuse(parts, &refusal);
            return pass(receiving, whole);
        }
        Err(refusal) => return AfterBody::Response(exchange.refuse(Some(parts), None, &refusal)),
    };
    let decision = match exchange.decide(parts, &keyed) {
        Decision::Claim => match exchange.engine.admit_now(&keyed.claim) {
            Some(Ok(grant)) => {
                let Some(mut received) = receiving.take() else { polled_after_ready() };
                let (parts, service) = (received.parts, &mut received.service);
                let running = received.exchange.run(service, parts, Incoming::whole(whole), keyed, grant);
                return AfterBody::Task(Task::running(running));
            }
            Some(Err(why)) => match exchange.instead(parts, &keyed, why) {
                Instead::Response(response) => return AfterBody::Response(response),
                instead => Decision::Instead(instead),
            },
            None => Decision::Claim,
        },
        instead @ Decision::Instead(_) => instead,
    };
    let Some(Receiving { exchange, service, parts, subject: _ }) = receiving.take() else { polled_after_ready() };
    AfterBody::Task(Task::begin(exchange.begin(service, parts, Incoming::whole(whole), keyed, decision)))
}

/// Lets a request through unprotected, with its body.
fn pass<S, B, R>(receiving: &mut Option<Receiving<S>>, whole: Collected) -> AfterBody<S::Future, R, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body,
{
    let Some(mut received) = receiving.take() else { polled_after_ready() };
    let request = Request::from_parts(received.parts, RequestBody::whole(whole));
    AfterBody::Passes(received.service.call(request))
}

#[cold]
fn polled_after_ready() -> ! {
    panic!("`ResponseFuture` polled after it was ready")
}

impl<S, B, R> fmt::Debug for ResponseFuture<S, B, R>
where
    S: Service<Request<RequestBody<B>>>,
    R: Body,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
