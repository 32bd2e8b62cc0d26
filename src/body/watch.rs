use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::{BoxError, IdleTimeout};
use crate::engine::Work;

/// A watch on the body that a handler reads: it notifies the work of the request if the body breaks, or pauses for too
/// long.
#[derive(Debug)]
pub(crate) struct Watch {
    work: Arc<Work>,
    idle: IdleTimeout,
    stalled: bool,
}

impl Watch {
    pub(crate) fn new(work: Arc<Work>, timeout: Duration) -> Self {
        Self { work, idle: IdleTimeout::new(timeout), stalled: false }
    }

    /// Returns whether the body has stalled: nothing is read of it any more.
    pub(super) fn is_over(&self) -> bool {
        self.stalled
    }

    pub(super) fn poll_frame<B>(
        &mut self,
        body: Pin<&mut B>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        if self.stalled {
            return Poll::Ready(None);
        }
        let polled = match body.poll_frame(cx) {
            Poll::Pending if self.idle.has_elapsed(cx) => {
                self.stalled = true;
                Poll::Ready(Some(Err(stood_still())))
            }
            polled => polled.map_err(Into::into),
        };
        match &polled {
            Poll::Ready(Some(Err(_))) => self.work.break_request(),
            Poll::Ready(_) => self.idle.restart(),
            Poll::Pending => {}
        }
        polled
    }
}

fn stood_still() -> BoxError {
    io::Error::new(io::ErrorKind::TimedOut, "no part of the request body came for as long as it is waited for").into()
}
