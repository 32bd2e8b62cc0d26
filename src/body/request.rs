use std::{
    pin::Pin,
    task::{Context, Poll},
    vec,
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::{BoxError, Collected, Watch};

pin_project! {
    /// The request body that the inner service receives: the client's own, or the bytes that the layer has read.
    ///
    /// The error is that of the client's body. If the body is passed on while its request is claimed, the error can
    /// also be a [`std::io::Error`] of the kind [`TimedOut`](std::io::ErrorKind::TimedOut): no part of the body arrived
    /// within the [`body_timeout`](crate::IdempotencyLayer::body_timeout).
    #[derive(Debug)]
    pub struct RequestBody<B> {
        #[pin]
        kind: RequestBodyKind<B>,
    }
}

pin_project! {
    #[project = RequestBodyKindProjected]
    #[derive(Debug)]
    enum RequestBodyKind<B> {
        Passed { #[pin] body: B },
        Watched { #[pin] body: B, watch: Box<Watch> },
        Whole { data: Option<Bytes>, trailers: Option<Box<HeaderMap>> },
        Resumed { read: vec::IntoIter<Bytes>, trailers: Option<Box<HeaderMap>>, rest: Option<(Pin<Box<B>>, Box<Watch>)> },
    }
}

/// An empty body.
impl<B> Default for RequestBody<B> {
    fn default() -> Self {
        Self::whole(Collected::default())
    }
}

impl<B> RequestBody<B> {
    /// Wraps a body that the layer has not touched.
    pub(crate) fn passed(body: B) -> Self {
        Self { kind: RequestBodyKind::Passed { body } }
    }

    /// Wraps a body that goes to the handler as it arrives, while `watch` notifies its work if the body breaks.
    pub(crate) fn watched(body: B, watch: Watch) -> Self {
        Self { kind: RequestBodyKind::Watched { body, watch: Box::new(watch) } }
    }

    pub(crate) fn whole(Collected { data, trailers }: Collected) -> Self {
        let data = Some(data).filter(|data| !data.is_empty());
        Self { kind: RequestBodyKind::Whole { data, trailers } }
    }

    /// Returns how many bytes of the body are held in memory.
    #[cfg(feature = "form")]
    pub(crate) fn held(&self) -> usize {
        match &self.kind {
            RequestBodyKind::Passed { .. } | RequestBodyKind::Watched { .. } => 0,
            RequestBodyKind::Whole { data, .. } => data.as_ref().map_or(0, Bytes::len),
            RequestBodyKind::Resumed { read, .. } => read.as_slice().iter().map(Bytes::len).sum(),
        }
    }

    /// Creates a body of which the layer has read the beginning. With trailers, or without a rest, the layer has read
    /// all of it.
    #[cfg(feature = "form")]
    pub(crate) fn resumed(
        read: Vec<Bytes>,
        trailers: Option<Box<HeaderMap>>,
        rest: Option<(Pin<Box<B>>, Watch)>,
    ) -> Self {
        let rest = rest.map(|(body, watch)| (body, Box::new(watch)));
        Self { kind: RequestBodyKind::Resumed { read: read.into_iter(), trailers, rest } }
    }
}

impl<B> Body for RequestBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.project().kind.project() {
            RequestBodyKindProjected::Passed { body } => body.poll_frame(cx).map_err(Into::into),
            RequestBodyKindProjected::Watched { body, watch } => watch.poll_frame(body, cx),
            RequestBodyKindProjected::Whole { data, trailers } => Poll::Ready(
                data.take()
                    .map(Frame::data)
                    .or_else(|| trailers.take().map(|trailers| Frame::trailers(*trailers)))
                    .map(Ok),
            ),
            RequestBodyKindProjected::Resumed { read, trailers, rest } => match (read.next(), rest) {
                (Some(data), _) => Poll::Ready(Some(Ok(Frame::data(data)))),
                (None, Some((rest, watch))) => watch.poll_frame(rest.as_mut(), cx),
                (None, None) => Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(*trailers)))),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            RequestBodyKind::Passed { body } => body.is_end_stream(),
            RequestBodyKind::Watched { body, watch } => watch.is_over() || body.is_end_stream(),
            RequestBodyKind::Whole { data, trailers } => data.is_none() && trailers.is_none(),
            RequestBodyKind::Resumed { read, trailers, rest } => {
                let is_over = |(rest, watch): &(Pin<Box<B>>, Box<Watch>)| watch.is_over() || rest.is_end_stream();
                read.as_slice().is_empty() && trailers.is_none() && rest.as_ref().is_none_or(is_over)
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            RequestBodyKind::Passed { body } | RequestBodyKind::Watched { body, .. } => body.size_hint(),
            RequestBodyKind::Whole { data, trailers } => {
                sizes(data.as_ref().map_or(0, Bytes::len), &SizeHint::with_exact(0), trailers.is_some())
            }
            RequestBodyKind::Resumed { read, trailers, rest } => {
                let rest = rest.as_ref().map_or(SizeHint::with_exact(0), |(rest, _)| rest.size_hint());
                sizes(read.as_slice().iter().map(Bytes::len).sum(), &rest, trailers.is_some())
            }
        }
    }
}

/// Returns the size hint, without an upper bound if there are trailers: a client that forwards the request and knows
/// its length leaves trailers out.
fn sizes(read: usize, rest: &SizeHint, trailers: bool) -> SizeHint {
    let read = read as u64;
    let mut hint = SizeHint::new();
    hint.set_lower(rest.lower().saturating_add(read));
    if let Some(upper) = rest.upper().filter(|_| !trailers) {
        hint.set_upper(upper.saturating_add(read));
    }
    hint
}
