//! A body whose frames are written down, and which counts how many of them were asked for.
#![allow(dead_code, unreachable_pub)] // each test takes what it needs

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body as AnyBody, Bytes},
    http::HeaderMap,
};
use http_body::{Body, Frame, SizeHint};

use super::Counter;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, Default)]
pub struct Frames {
    to_come: VecDeque<Result<Frame<Bytes>, BoxError>>,
    pulled: Counter,
    length: Option<u64>,
}

impl Frames {
    pub fn of(chunks: impl IntoIterator<Item = impl Into<Bytes>>) -> Self {
        let frames = chunks.into_iter().map(|chunk| Ok(Frame::data(chunk.into()))).collect();
        Self { to_come: frames, ..Self::default() }
    }

    pub fn trailers(mut self, trailers: &[(&'static str, &'static str)]) -> Self {
        self.to_come.push_back(Ok(Frame::trailers(fields(trailers))));
        self
    }

    /// Breaks here.
    pub fn broken(mut self) -> Self {
        self.to_come.push_back(Err("broken off".into()));
        self
    }

    /// Announces its length, as the body of a message with `Content-Length` does.
    pub fn told(mut self) -> Self {
        let lengths = self.to_come.iter().flatten().filter_map(Frame::data_ref).map(Bytes::len);
        self.length = Some(lengths.sum::<usize>() as u64);
        self
    }

    /// Counts the frames that were asked for.
    pub fn counted_by(mut self, pulled: &Counter) -> Self {
        self.pulled = pulled.clone();
        self
    }

    pub fn boxed(self) -> AnyBody {
        AnyBody::new(self)
    }
}

impl FromIterator<Result<Frame<Bytes>, BoxError>> for Frames {
    fn from_iter<I: IntoIterator<Item = Result<Frame<Bytes>, BoxError>>>(frames: I) -> Self {
        Self { to_come: frames.into_iter().collect(), ..Self::default() }
    }
}

impl Body for Frames {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = self.to_come.pop_front();
        if frame.is_some() {
            self.pulled.next();
        }
        Poll::Ready(frame)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// Fields in the order in which they are written, repeated ones too.
pub fn fields(lines: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for (name, value) in lines {
        fields.append(*name, value.parse().unwrap());
    }
    fields
}
