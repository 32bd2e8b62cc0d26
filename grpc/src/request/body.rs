use std::{
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{BufMut, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Sleep, sleep};

use super::{Encoding, FrameScan, PREFIX};
use crate::{
    BoxError,
    call::{Call, Trouble},
};

pin_project! {
    /// The body of a request: as it comes, or one message, decompressed.
    ///
    /// The body of a protected call breaks if it turns out to be something else: a stream of messages, or a message that
    /// is too long or cannot be decompressed.
    pub struct CallBody<B> {
        #[pin]
        body: B,
        message: Option<Message>,
    }
}

/// A message while it is read.
struct Message {
    call: Arc<Call>,
    scan: FrameScan,
    /// What is not passed on yet: the prefix, or a compressed message.
    held: BytesMut,
    /// Runs once the message is there and its end is not.
    end: Option<Pin<Box<Sleep>>>,
    has_failed: bool,
}

impl<B> CallBody<B> {
    /// Wraps a body that is left alone.
    pub(crate) fn passed(body: B) -> Self {
        Self { body, message: None }
    }

    /// Wraps the body of a call that is protected if it has a key.
    pub(crate) fn of_call(body: B, call: Arc<Call>) -> Self {
        let (scan, held) = (FrameScan::default(), BytesMut::new());
        Self { body, message: Some(Message { call, scan, held, end: None, has_failed: false }) }
    }
}

impl Message {
    /// Takes bytes in, and returns those that can be passed on.
    fn add(&mut self, data: Bytes) -> Result<Option<Bytes>, Trouble> {
        self.scan.advance(&data);
        if self.scan.is_stream() {
            return Err(Trouble::Stream);
        }
        let limit = self.call.settings.request_limit;
        let first = self.scan.first();
        if first.is_some_and(|first| first.length > limit) {
            return Err(Trouble::TooLarge);
        }
        match first {
            Some(first) if !first.is_compressed && self.held.is_empty() => Ok(Some(data)),
            first => {
                self.held.extend_from_slice(&data);
                match first {
                    Some(first) if !first.is_compressed => Ok(Some(self.held.split().freeze())),
                    Some(_) if self.scan.is_one_message() => {
                        let held = self.held.split();
                        let message = self.call.encoding.decompress(held.get(PREFIX..).unwrap_or_default(), limit)?;
                        Ok(Some(framed(&message)))
                    }
                    _ => Ok(None),
                }
            }
        }
    }

    /// Returns whether the end of the request has been awaited for as long as it is.
    fn has_waited(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.scan.is_one_message() {
            return false;
        }
        let end = self.end.get_or_insert_with(|| Box::pin(sleep(self.call.settings.end_timeout)));
        end.as_mut().poll(cx).is_ready()
    }

    fn fail(&mut self, trouble: Trouble) -> BoxError {
        self.has_failed = true;
        self.call.fail(trouble);
        io::Error::other(trouble).into()
    }

    fn poll_frame<B>(&mut self, mut body: Pin<&mut B>, cx: &mut Context<'_>) -> Polled
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        self.call.read();
        if self.has_failed {
            return Poll::Ready(None);
        }
        if let Some(trouble) = self.call.refused {
            return Poll::Ready(Some(Err(self.fail(trouble))));
        }
        loop {
            let frame = match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error.into()))),
                Poll::Ready(None) if self.scan.is_torn() => return Poll::Ready(Some(Err(self.fail(Trouble::Torn)))),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending if self.has_waited(cx) => return Poll::Ready(Some(Err(self.fail(Trouble::Stream)))),
                Poll::Pending => return Poll::Pending,
            };
            match frame.into_data().map(|data| self.add(data)) {
                Ok(Ok(Some(data))) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(Ok(None)) => {}
                Ok(Err(trouble)) => return Poll::Ready(Some(Err(self.fail(trouble)))),
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
    }
}

/// A frame of a body.
type Polled = Poll<Option<Result<Frame<Bytes>, BoxError>>>;

/// Returns a message with a prefix that says that it is not compressed.
fn framed(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(message);
    framed.freeze()
}

impl<B> Body for CallBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.project();
        match this.message {
            Some(message) if !message.call.passes() => message.poll_frame(this.body, cx),
            _ => this.body.poll_frame(cx).map_err(Into::into),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.message {
            Some(message) if !message.call.passes() => {
                message.has_failed
                    || (self.body.is_end_stream() && !message.scan.is_torn() && message.call.refused.is_none())
            }
            _ => self.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.message {
            // A compressed message becomes longer, and a malformed one breaks.
            Some(message) if !message.call.passes() && message.call.encoding != Encoding::Identity => {
                SizeHint::default()
            }
            _ => self.body.size_hint(),
        }
    }
}

impl<B> std::fmt::Debug for CallBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallBody").finish_non_exhaustive()
    }
}
