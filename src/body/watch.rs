use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::{BoxError, IdleTimeout};

/// Whether the request body broke, or paused for too long, while the handler was reading it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BrokenFlag(Arc<AtomicBool>);

impl BrokenFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A watch on the body that a handler reads: it sets a flag if the body breaks, or pauses for too long.
#[derive(Debug)]
pub(crate) struct Watch {
    broken: BrokenFlag,
    idle: IdleTimeout,
    stalled: bool,
}

impl Watch {
    pub(crate) fn new(broken: BrokenFlag, timeout: Duration) -> Self {
        Self { broken, idle: IdleTimeout::new(timeout), stalled: false }
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
            Poll::Ready(Some(Err(_))) => self.broken.0.store(true, Ordering::Release),
            Poll::Ready(_) => self.idle.restart(),
            Poll::Pending => {}
        }
        polled
    }
}

fn stood_still() -> BoxError {
    io::Error::new(io::ErrorKind::TimedOut, "no part of the request body came for as long as it is waited for").into()
}
