//! The future of a run in its caller's task.
//!
//! Dropped before the claim it is simply gone. Dropped after it, the future is moved into a task of the runtime that it
//! was first polled in and polled to its end there. Nothing is spawned for a request whose client stays.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use super::{Engine, Stage, Work};
use crate::value::Event;

/// A run in its caller's task, which the runtime finishes if the caller drops it after the claim.
///
/// In the caller's task, so that task-locals and spans stay those of the caller as long as there is one.
pub(crate) struct Task<T: 'static> {
    /// Empty while it is polled: after a panic nothing is left that could be polled again.
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    engine: Arc<Engine>,
    work: Arc<Work>,
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

impl<T: 'static> Task<T> {
    pub(crate) fn new(engine: Arc<Engine>, work: Arc<Work>, future: impl Future<Output = T> + Send + 'static) -> Self {
        Self {
            future: Some(Box::pin(future)),
            engine,
            work,
            #[cfg(feature = "tracing")]
            span: tracing::Span::current(),
        }
    }
}

impl<T: 'static> Future for Task<T> {
    type Output = T;

    /// # Panics
    ///
    /// Panics if the work panics, or if it is polled after it ended.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Some(mut future) = self.future.take() else { panic!("polled after it was ready") };
        self.work.capture_runtime();
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            self.future = Some(future);
        }
        polled
    }
}

impl<T: 'static> Drop for Task<T> {
    fn drop(&mut self) {
        let Some(future) = self.future.take() else { return };
        let Some((key, party)) = self.work.claim() else { return };
        if self.work.stage() == Stage::Attached {
            return self.engine.report(&Event::Dropped { key, after: None });
        }
        self.work.detach();
        let rest = async move {
            future.await;
        };
        #[cfg(feature = "tracing")]
        let rest = tracing::Instrument::instrument(rest, std::mem::replace(&mut self.span, tracing::Span::none()));
        let (engine, late) = (self.engine.clone(), key.clone());
        let too_long = move |after| engine.report(&Event::Dropped { key: &late, after: Some(after) });
        let Some(runtime) = self.work.runtime() else {
            return self.engine.report(&Event::Dropped { key, after: None });
        };
        self.engine.background_tasks.spawn(runtime, party.bucket(key), rest, too_long);
        self.engine.report(&Event::Detached { key });
    }
}

impl<T: 'static> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").field("work", &self.work).finish_non_exhaustive()
    }
}
