use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::Collected;

pin_project! {
    /// The request body that the inner service gets: the client's own, or the bytes that the layer has read.
    #[derive(Debug)]
    pub struct RequestBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProjected]
    #[derive(Debug)]
    enum Kind<B> {
        Passed { #[pin] body: B },
        Whole { data: Option<Bytes>, trailers: Option<HeaderMap> },
    }
}

impl<B> RequestBody<B> {
    /// A body that the layer has not touched.
    pub(crate) fn passed(body: B) -> Self {
        Self { kind: Kind::Passed { body } }
    }

    pub(crate) fn whole(Collected { data, trailers }: Collected) -> Self {
        let data = Some(data).filter(|data| !data.is_empty());
        Self { kind: Kind::Whole { data, trailers } }
    }
}

impl<B: Body<Data = Bytes>> Body for RequestBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            KindProjected::Passed { body } => body.poll_frame(cx),
            KindProjected::Whole { data, trailers } => {
                Poll::Ready(data.take().map(Frame::data).or_else(|| trailers.take().map(Frame::trailers)).map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { body } => body.is_end_stream(),
            Kind::Whole { data, trailers } => data.is_none() && trailers.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { body } => body.size_hint(),
            Kind::Whole { data, trailers } => {
                let length = data.as_ref().map_or(0, Bytes::len) as u64;
                let mut hint = SizeHint::new();
                hint.set_lower(length);
                // Whoever passes the request on and knows its length leaves trailers out.
                if trailers.is_none() {
                    hint.set_upper(length);
                }
                hint
            }
        }
    }
}
