//! Bodies, and how they are read.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use pin_project_lite::pin_project;

const LIMIT: usize = 1 << 20;

pin_project! {
    /// Of a request or an answer.
    #[project = BodyProjection]
    pub enum Body<B> {
        Passed { #[pin] inner: B },
        Whole { data: Bytes },
    }
}

impl<B: http_body::Body<Data = Bytes>> http_body::Body for Body<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project() {
            BodyProjection::Passed { inner } => inner.poll_frame(cx),
            BodyProjection::Whole { data } if data.is_empty() => Poll::Ready(None),
            BodyProjection::Whole { data } => Poll::Ready(Some(Ok(Frame::data(mem::take(data))))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Passed { inner } => inner.is_end_stream(),
            Self::Whole { data } => data.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Passed { inner } => inner.size_hint(),
            Self::Whole { data } => SizeHint::with_exact(data.len() as u64),
        }
    }
}

/// A body that is too long or broken.
pub(super) struct Unreadable;

/// Reads a body to its end. One that comes in one piece is not copied.
#[derive(Default)]
pub(super) struct Collector {
    only: Bytes,
    joined: BytesMut,
}

impl Collector {
    pub(super) fn poll<B>(&mut self, mut body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<Result<Bytes, Unreadable>>
    where
        B: http_body::Body<Data = Bytes>,
    {
        while let Some(frame) = ready!(body.as_mut().poll_frame(cx)) {
            let Ok(frame) = frame else { return Poll::Ready(Err(Unreadable)) };
            if let Ok(data) = frame.into_data()
                && !self.add(data)
            {
                return Poll::Ready(Err(Unreadable));
            }
            if body.is_end_stream() {
                break;
            }
        }
        Poll::Ready(Ok(if self.joined.is_empty() { mem::take(&mut self.only) } else { self.take_joined() }))
    }

    /// Whether it is not too long now.
    fn add(&mut self, data: Bytes) -> bool {
        if self.only.is_empty() && self.joined.is_empty() {
            self.only = data;
        } else {
            self.join(&data);
        }
        self.only.len() + self.joined.len() <= LIMIT
    }

    #[cold]
    fn join(&mut self, data: &[u8]) {
        let first = mem::take(&mut self.only);
        self.joined.extend_from_slice(&first);
        self.joined.extend_from_slice(data);
    }

    #[cold]
    fn take_joined(&mut self) -> Bytes {
        mem::take(&mut self.joined).freeze()
    }
}
