//! The rest of a refused body is read, within bounds, before the response is sent.
//!
//! A server that closes a connection with unread bytes resets it, and a client that sends first and reads then may lose
//! the response that it has not read yet.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::Body;
use tokio::time::{Sleep, sleep};

use crate::{
    body::{BoxError, Drain},
    http::Exchange,
};

/// How much of a refused body is read.
const DRAIN_BYTES: usize = 8 * 1024 * 1024;
/// How long the rest of a refused body is read.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// The rest of a refused body, as far as it is read.
pub(crate) struct BoundedDrain {
    drain: Drain,
    end: Pin<Box<Sleep>>,
}

impl BoundedDrain {
    pub(crate) fn new() -> Self {
        Self { drain: Drain::new(DRAIN_BYTES), end: Box::pin(sleep(DRAIN_TIME)) }
    }

    /// Reads on. Whether the body ended in time makes no difference to the answer.
    pub(crate) fn poll<B>(&mut self, body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<()>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        if self.drain.poll(body, cx).is_ready() { Poll::Ready(()) } else { self.end.as_mut().poll(cx) }
    }
}

impl Exchange {
    /// Reads what the client still sends, within bounds.
    pub(crate) async fn drain<B>(body: B)
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let mut body = pin!(body);
        let mut drain = BoundedDrain::new();
        poll_fn(|cx| drain.poll(body.as_mut(), cx)).await;
    }
}
