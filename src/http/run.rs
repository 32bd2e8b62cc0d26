//! Steps 7 to 10 of a request that was granted: run the handler, take its response in, end the claim, respond.
//!
//! The engine ends the claim (`engine/run`); this file is the job that it runs, written as a state machine:
//!
//! ```text
//! Handler ──► Reading (the response body) ──► [Replacing a token, or what is kept] ──► value and completion
//! ```
//!
//! | how the handler ended | what becomes of the record | the client receives |
//! | --- | --- | --- |
//! | an answer that the policy keeps | settled | the answer |
//! | an answer that it does not keep | released | the answer |
//! | 401, 407 or 429, and nothing began | undone | the answer |
//! | a panic or an error | released; settled if failures are kept | the panic or the error |
//! | the request broke while it was read | released | the answer |
//! | the claim was lost meanwhile | the other claim's | what the record says |

use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, request, response::Parts};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::sleep;
use tower_service::Service;

use super::{
    Exchange, KeyedRequest, RequestContext,
    answer::{Answered, RecordAction},
    receive::Incoming,
    record::{
        OfRecord,
        response_kind::{has_failed, is_of_unknown_length},
    },
};
use crate::{
    body::{BrokenFlag, Collected, Collector, HeldBody, Patience, RequestBody, ResponseBody},
    engine::{Completion, Engine, Grant, Job, Operation, Outcome, Run, RunState, Running, Standing},
    token::{IssuedFlag, PresentedToken},
    value::{HandlerDirectives, Refusal},
};

type HandlerResult<B, E> = Result<Response<ResponseBody<B>>, E>;

pin_project! {
    /// The work of a request that was granted.
    pub(super) struct HandlerJob<F, B: Body, E> {
        exchange: Arc<Exchange>,
        token: Option<Arc<PresentedToken>>,
        // The request's head, if something looks back at it.
        head: Option<Box<request::Parts>>,
        issued: Option<IssuedFlag>,
        broken: Option<BrokenFlag>,
        of_record: Option<Box<OfRecord>>,
        #[pin]
        work: HandlerWork<F, B, E>,
    }
}

pin_project! {
    #[project = HandlerWorkProjected]
    enum HandlerWork<F, B: Body, E> {
        Handler { #[pin] future: F },
        // The handler's service panicked when it was called.
        Panicked { panic: Option<Box<dyn Any + Send>> },
        Reading { head: Option<Parts>, collector: Collector, #[pin] body: HeldBody<B> },
        Replacing { replaced: Pin<Box<dyn Future<Output = Answered<B>> + Send>> },
        Ended { result: Option<HandlerResult<B, E>> },
    }
}

impl Exchange {
    /// Runs the handler under the claim that was granted for its request.
    #[inline]
    pub(super) fn run<S, B, R>(
        self: Arc<Self>,
        service: &mut S,
        mut parts: request::Parts,
        Incoming { body, broken, .. }: Incoming<B>,
        KeyedRequest { claim, token, .. }: KeyedRequest,
        grant: Grant,
    ) -> Running<HandlerResult<R, S::Error>>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Send,
    {
        let run = Run::new(&self.engine, claim, grant);
        let head = self.looks_back().then(|| Box::new(parts.clone()));
        let operation = Operation::new(run.state.clone(), self.policy.run.retention);
        parts.extensions.insert(operation.remembered(self.memory(token.as_deref())));
        let issued = self.insert_issuer(&mut parts, token.as_deref());
        // By reference, since what a closure owns is moved several times on its way through `catch_unwind`.
        let (mut request, mut called) = (Some(Request::from_parts(parts, body)), None);
        let caught = catch_unwind(AssertUnwindSafe(|| called = request.take().map(|request| service.call(request))));
        let work = match (called, caught) {
            (Some(future), _) => HandlerWork::Handler { future },
            (None, caught) => HandlerWork::Panicked { panic: caught.err() },
        };
        let token = token.map(Arc::from);
        Running::new(run, HandlerJob { exchange: self, token, head, issued, broken, of_record: None, work })
    }
}

/// What follows from a step of the work.
enum HandlerStep<F, B: Body, E> {
    Next(HandlerWork<F, B, E>),
    Answered(Answered<B>),
}

impl<F, B, E> Job for HandlerJob<F, B, E>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
    E: Send + 'static,
{
    type Output = HandlerResult<B, E>;

    fn engine(&self) -> &Arc<Engine> {
        &self.exchange.engine
    }

    fn poll_work(self: Pin<&mut Self>, state: &RunState, cx: &mut Context<'_>) -> Poll<Completion> {
        let mut this = self.project();
        let (exchange, token) = (&*this.exchange, this.token.as_ref());
        let context = RequestContext::of_run(state, token.map(|token| &**token), this.head.as_deref());
        let (head, body, action) = loop {
            let next = match this.work.as_mut().project() {
                HandlerWorkProjected::Handler { future } => match ready!(future.poll(cx)) {
                    Ok(response) => exchange.received(context, state.directives(), this.issued.as_ref(), response),
                    Err(error) => {
                        let action =
                            exchange.unless_broken(exchange.action_of_failure(context), this.broken.as_ref(), state);
                        this.work.set(HandlerWork::Ended { result: Some(Err(error)) });
                        return Poll::Ready(exchange.completion(action, context.token));
                    }
                },
                HandlerWorkProjected::Reading { head, collector, mut body } => {
                    let read = ready!(body.as_mut().poll(collector, cx));
                    let Some(head) = head.take() else { panic!("polled after it was ready") };
                    // The handler's body may have been running until now.
                    let directives = state.directives();
                    match read {
                        Ok(whole) => this.exchange.read_whole(context, directives, token, head, whole),
                        Err(error) => {
                            HandlerStep::Answered(exchange.read_in_part(context, directives, head, error, body))
                        }
                    }
                }
                HandlerWorkProjected::Replacing { replaced } => {
                    HandlerStep::Answered(ready!(replaced.as_mut().poll(cx)))
                }
                HandlerWorkProjected::Panicked { panic } => match panic.take() {
                    Some(panic) => resume_unwind(panic),
                    None => panic!("polled after it was ready"),
                },
                HandlerWorkProjected::Ended { .. } => panic!("polled after it was ready"),
            };
            match next {
                HandlerStep::Next(work) => this.work.set(work),
                HandlerStep::Answered(answered) => break answered,
            }
        };
        if !body.is_broken() {
            exchange.check_answer(&state.key, &head, &action, state.directives().stream);
        }
        let action = exchange.unless_broken(action, this.broken.as_ref(), state);
        *this.of_record = exchange.of_record(&action);
        let completion = exchange.completion(action, context.token);
        state.set_status(head.status.as_u16());
        this.work.set(HandlerWork::Ended { result: Some(Ok(Response::from_parts(head, body))) });
        Poll::Ready(completion)
    }

    fn drop_work(self: Pin<&mut Self>) {
        let mut work = self.project().work;
        if !matches!(*work, HandlerWork::Ended { .. }) {
            work.set(HandlerWork::Ended { result: None });
        }
    }

    fn keeps_panics(&self) -> bool {
        self.exchange.policy.run.keeps_panics()
    }

    fn completion_of_panic(self: Pin<&mut Self>, state: &RunState) -> Completion {
        let context = RequestContext::of_run(state, self.token.as_deref(), self.head.as_deref());
        let action = self.exchange.unless_broken(self.exchange.action_of_failure(context), self.broken.as_ref(), state);
        self.exchange.completion(action, context.token)
    }

    fn remembers_rolled_back(&self, _: u32) -> Option<Duration> {
        None
    }

    fn respond(self: Pin<&mut Self>, state: &RunState, outcome: Outcome<()>) -> Self::Output {
        let mut this = self.project();
        let exchange = &*this.exchange;
        let context = RequestContext::of_run(state, this.token.as_deref(), this.head.as_deref());
        match outcome {
            Outcome::Completed { value: (), recorded } => {
                let HandlerWorkProjected::Ended { result } = this.work.as_mut().project() else {
                    panic!("polled after it was ready")
                };
                let Some(mut result) = result.take() else { panic!("polled after it was ready") };
                if let (Ok(response), Some(of_record)) = (&mut result, this.of_record.take().filter(|_| recorded)) {
                    exchange.tell(response, *of_record);
                }
                result
            }
            // Never its own answer: that of the other run is the one that retries receive.
            // A hook has to decide about that answer, so the client has to come again.
            Outcome::Overtaken(Standing::Settled(payload))
                if exchange.awaits_hook(context, payload.as_ref()).is_some() =>
            {
                let refusal = Refusal::RequestInProgress { left: Duration::ZERO };
                Ok(exchange.refuse(context.head, Some(context.key), &refusal))
            }
            Outcome::Overtaken(Standing::Settled(payload)) => Ok(exchange.duplicate(context, payload)),
            Outcome::Overtaken(Standing::Running(left)) => Ok(exchange.running(context, left)),
            Outcome::RolledBack { attempt: _ } => {
                Ok(exchange.refuse(context.head, Some(context.key), &Refusal::RolledBack))
            }
            Outcome::CommitUnknown => Ok(exchange.refuse(context.head, Some(context.key), &Refusal::CommitUnknown)),
            Outcome::NotRun(why) => Ok(exchange.refuse(context.head, Some(context.key), &why.refusal())),
        }
    }
}

impl Exchange {
    /// Receives the handler's response: it is passed on as it comes, or its body is read.
    fn received<F, B: Body<Data = Bytes>, E>(
        &self,
        context: RequestContext<'_>,
        directives: HandlerDirectives,
        issued: Option<&IssuedFlag>,
        response: Response<B>,
    ) -> HandlerStep<F, B, E> {
        let (mut head, body) = response.into_parts();
        if let Some(issued) = issued {
            issued.mark(&mut head.headers);
        }
        self.remove_replay_header(&mut head.headers);
        if let Some(why) = self.passes_through(&head, &body, directives) {
            let action = self.action_unheld(context, &head, why, directives);
            return HandlerStep::Answered((head, ResponseBody::passed(body), action));
        }
        let time = self.policy.stream_after.filter(|_| is_of_unknown_length(&head, &body));
        let patience = time.map_or(Patience::Endless, |time| Patience::Until(Box::pin(sleep(time))));
        let (body, collector) = HeldBody::new(body, self.policy.response_limit, patience);
        HandlerStep::Next(HandlerWork::Reading { head: Some(head), collector, body })
    }

    /// Decides about a response whose body was read to its end.
    fn read_whole<F, B: Body, E>(
        self: &Arc<Self>,
        context: RequestContext<'_>,
        directives: HandlerDirectives,
        token: Option<&Arc<PresentedToken>>,
        mut head: Parts,
        whole: Collected,
    ) -> HandlerStep<F, B, E> {
        self.check_trailers(context.key, &whole);
        let mut action = self.action(&head, Ok(&whole), directives, context);
        if !head.extensions.is_empty() {
            action = self.for_duplicates(&head, action, context.claim.trace);
        }
        let replaces = self.tokens.as_ref().is_some_and(|rule| rule.replaces && has_failed(head.status));
        // If nothing began, nothing has failed: the token that came is good as it is.
        let fails = matches!(action, RecordAction::Release(_)) && directives.retain.is_none();
        let token = token.filter(|_| replaces && fails).cloned();
        if token.is_none() && !self.changes_what_is_kept() {
            return HandlerStep::Answered((head, ResponseBody::whole(whole.data, whole.trailers), action));
        }
        let (exchange, key, trace) = (self.clone(), context.key.clone(), context.claim.trace);
        HandlerStep::Next(HandlerWork::Replacing {
            replaced: Box::pin(async move {
                if token.is_some() {
                    action = exchange.replace(&mut head, &whole, token.as_deref(), trace, action).await;
                }
                if exchange.changes_what_is_kept() {
                    action = exchange.changed(&key, action).await;
                }
                (head, ResponseBody::whole(whole.data, whole.trailers), action)
            }),
        })
    }
}
