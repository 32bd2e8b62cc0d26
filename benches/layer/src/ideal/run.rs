//! The handler while it runs, and what becomes of its answer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Response, StatusCode, response::Parts};
use pin_project_lite::pin_project;
use tokio::{
    runtime::Handle,
    time::{Sleep, sleep},
};

use super::{
    body::{Body, Collector},
    future::{polled_after_end, refuse},
    identity::Claimant,
    shard::LEASE,
    store::{Place, Store},
};

/// A claim, which is released unless it was settled.
pub(super) struct Owned {
    store: Arc<Store>,
    place: Place,
    claimant: Claimant,
    settled: bool,
}

impl Owned {
    pub(super) fn new(store: Arc<Store>, place: Place, claimant: Claimant) -> Self {
        Self { store, place, claimant, settled: false }
    }

    fn release(&mut self) {
        if !self.settled {
            self.settled = true;
            self.store.release(self.place, self.claimant);
        }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.release();
    }
}

pin_project! {
    pub(super) struct Run<F, R> {
        #[pin]
        step: Step<F, R>,
        collector: Collector,
        owned: Owned,
        heartbeat: Option<Pin<Box<Sleep>>>,
    }
}

pin_project! {
    #[project = StepProjection]
    enum Step<F, R> {
        Handling { #[pin] handling: F },
        Answering { head: Option<Parts>, #[pin] body: R },
    }
}

impl<F, R> Run<F, R> {
    pub(super) fn new(handling: F, owned: Owned) -> Self {
        Self { step: Step::Handling { handling }, collector: Collector::default(), owned, heartbeat: None }
    }
}

impl<F, R, E> Future for Run<F, R>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: http_body::Body<Data = Bytes>,
{
    type Output = Result<Response<Body<R>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let StepProjection::Handling { handling } = this.step.as_mut().project() {
            match catch_unwind(AssertUnwindSafe(|| handling.poll(cx))) {
                Ok(Poll::Pending) => return beat(this.heartbeat, cx),
                Ok(Poll::Ready(Err(error))) => return Poll::Ready(Err(error)),
                Ok(Poll::Ready(Ok(answer))) => {
                    let (head, body) = answer.into_parts();
                    this.step.set(Step::Answering { head: Some(head), body });
                }
                Err(panic) => {
                    this.owned.release();
                    resume_unwind(panic)
                }
            }
        }
        let StepProjection::Answering { head, body } = this.step.project() else { polled_after_end() };
        let Poll::Ready(body) = this.collector.poll(body, cx) else { return beat(this.heartbeat, cx) };
        let Some(head) = head.take() else { polled_after_end() };
        let Ok(body) = body else { return Poll::Ready(Ok(refuse(StatusCode::INTERNAL_SERVER_ERROR))) };
        if head.status.is_success() || head.status.is_redirection() {
            let Owned { store, place, claimant, settled } = this.owned;
            *settled = true;
            if !store.settle(*place, *claimant, head.status, &head.headers, &body) {
                return Poll::Ready(Ok(refuse(StatusCode::CONFLICT)));
            }
        }
        Poll::Ready(Ok(Response::from_parts(head, Body::Whole { data: body })))
    }
}

/// Waits until the lease has to be renewed; the renewal itself is left out.
#[cold]
fn beat<T>(heartbeat: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<T> {
    let timer = heartbeat.get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(LEASE / 3))));
    let _ = timer.as_mut().poll(cx);
    Poll::Pending
}

type BoxedRun<R, E> = Pin<Box<dyn Future<Output = Result<Response<Body<R>>, E>> + Send>>;

/// A run that goes on when its client has left.
pub struct Detached<R: Send + 'static, E: Send + 'static>(Option<BoxedRun<R, E>>);

impl<R: Send + 'static, E: Send + 'static> Detached<R, E> {
    pub(super) fn new(run: BoxedRun<R, E>) -> Self {
        Self(Some(run))
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<Body<R>>, E>> {
        let Some(run) = &mut self.0 else { polled_after_end() };
        let polled = run.as_mut().poll(cx);
        if polled.is_ready() {
            self.0 = None;
        }
        polled
    }
}

impl<R: Send + 'static, E: Send + 'static> Drop for Detached<R, E> {
    fn drop(&mut self) {
        if let Some(run) = self.0.take() {
            go_on(run);
        }
    }
}

#[cold]
fn go_on<R: Send + 'static, E: Send + 'static>(run: BoxedRun<R, E>) {
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(async { drop(run.await) });
    }
}
