use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::stream::Stream;
use http::HeaderMap;
use http_body::Body;

use super::{BoxError, IdleTimeout, RequestBody, Watch};

/// A body that is read only as far as its reader needs, and not much further than a limit. The bytes that were read are
/// part of the resumed body.
pub(crate) struct Prefix<B> {
    body: Pin<Box<B>>,
    read: Vec<Bytes>,
    trailers: Option<Box<HeaderMap>>,
    /// The number of bytes that may still be read.
    left: usize,
    ended: bool,
    paused: bool,
    error: Option<BoxError>,
    idle: IdleTimeout,
    stalled: bool,
}

impl<B: Body<Data = Bytes>> Prefix<B> {
    pub(crate) fn new(body: B, limit: usize, idle: IdleTimeout) -> Self {
        Self {
            body: Box::pin(body),
            read: Vec::new(),
            trailers: None,
            left: limit,
            ended: false,
            paused: false,
            error: None,
            idle,
            stalled: false,
        }
    }

    /// Takes the error that broke the body, if there is one.
    pub(crate) fn take_error(&mut self) -> Option<BoxError> {
        self.error.take()
    }

    /// Returns whether no frame arrived within the idle timeout.
    pub(crate) fn has_stalled(&self) -> bool {
        self.stalled
    }

    /// Returns the whole body, including the bytes that were read. From now on its rest is watched.
    pub(crate) fn resumed(self, watch: Watch) -> RequestBody<B> {
        let rest = (!self.ended).then_some((self.body, watch));
        RequestBody::resumed(self.read, self.trailers, rest)
    }
}

impl<B> Stream for Prefix<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.paused {
            // The reader is greedy: without this pause it would read on before it parses the bytes that it has.
            self.paused = false;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // At an end, unlike at an error, the bytes that were read are parsed.
        if self.ended || self.left == 0 {
            return Poll::Ready(None);
        }
        match self.body.as_mut().poll_frame(cx) {
            Poll::Pending if self.idle.has_elapsed(cx) => {
                self.ended = true;
                self.stalled = true;
                Poll::Ready(None)
            }
            Poll::Pending => Poll::Pending,
            Poll::Ready(None) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => {
                self.ended = true;
                self.error = Some(error.into());
                Poll::Ready(None)
            }
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    self.idle.restart();
                    self.left = self.left.saturating_sub(data.len());
                    self.paused = true;
                    self.read.push(data.clone());
                    Poll::Ready(Some(Ok(data)))
                }
                Err(frame) => {
                    self.ended = true;
                    self.trailers = frame.into_trailers().ok().map(Box::new);
                    Poll::Ready(None)
                }
            },
        }
    }
}
