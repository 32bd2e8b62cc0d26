use std::{
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The response body that a client receives: the inner service's own, a kept one, or one of the layer's.
    pub struct ResponseBody<B>
    where
        B: Body,
    {
        #[pin]
        kind: ResponseBodyKind<B>,
    }
}

pin_project! {
    #[project = ResponseBodyKindProjected]
    enum ResponseBodyKind<B>
    where
        B: Body,
    {
        Passed { #[pin] body: B },
        Whole { data: Bytes, trailers: Option<Box<HeaderMap>> },
        Resumed { read: Bytes, rest: Pin<Box<B>> },
        Broken { read: Bytes, error: Option<B::Error> },
    }
}

impl<B: Body> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ResponseBodyKind::Passed { .. } => "ResponseBody(passed)",
            ResponseBodyKind::Whole { .. } => "ResponseBody(whole)",
            ResponseBodyKind::Resumed { .. } => "ResponseBody(resumed)",
            ResponseBodyKind::Broken { .. } => "ResponseBody(broken)",
        })
    }
}

/// An empty body, as layers of `tower-http` create one for their own answers.
impl<B: Body> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::whole(Bytes::new(), None)
    }
}

impl<B: Body> ResponseBody<B> {
    /// Wraps a body that the layer has not touched.
    pub(crate) fn passed(body: B) -> Self {
        Self { kind: ResponseBodyKind::Passed { body } }
    }

    pub(crate) fn whole(data: Bytes, trailers: Option<Box<HeaderMap>>) -> Self {
        Self { kind: ResponseBodyKind::Whole { data, trailers } }
    }

    /// Creates a body of which the layer has read the beginning.
    pub(crate) fn resumed(read: Bytes, rest: Pin<Box<B>>) -> Self {
        Self { kind: ResponseBodyKind::Resumed { read, rest } }
    }

    pub(crate) fn is_broken(&self) -> bool {
        matches!(self.kind, ResponseBodyKind::Broken { .. })
    }

    /// Creates a body that broke after the bytes that were read.
    pub(crate) fn broken(read: Bytes, error: B::Error) -> Self {
        Self { kind: ResponseBodyKind::Broken { read, error: Some(error) } }
    }
}

/// Takes the bytes that are there, if any are left.
fn take_data<E>(data: &mut Bytes) -> Option<Result<Frame<Bytes>, E>> {
    (!data.is_empty()).then(|| Ok(Frame::data(mem::take(data))))
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().kind.project() {
            ResponseBodyKindProjected::Passed { body } => body.poll_frame(cx),
            ResponseBodyKindProjected::Whole { data, trailers } => {
                Poll::Ready(take_data(data).or_else(|| trailers.take().map(|trailers| Ok(Frame::trailers(*trailers)))))
            }
            ResponseBodyKindProjected::Resumed { read, rest } => match take_data(read) {
                Some(frame) => Poll::Ready(Some(frame)),
                None => rest.as_mut().poll_frame(cx),
            },
            ResponseBodyKindProjected::Broken { read, error } => {
                Poll::Ready(take_data(read).or_else(|| error.take().map(Err)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            ResponseBodyKind::Passed { body } => body.is_end_stream(),
            ResponseBodyKind::Whole { data, trailers } => data.is_empty() && trailers.is_none(),
            ResponseBodyKind::Resumed { read, rest } => read.is_empty() && rest.is_end_stream(),
            ResponseBodyKind::Broken { read, error } => read.is_empty() && error.is_none(),
        }
    }

    /// Returns an exact size only if no trailers follow: a server that knows the length leaves trailers out.
    fn size_hint(&self) -> SizeHint {
        let at_least = |bytes: &Bytes| {
            let mut hint = SizeHint::new();
            hint.set_lower(bytes.len() as u64);
            hint
        };
        match &self.kind {
            ResponseBodyKind::Passed { body } => body.size_hint(),
            ResponseBodyKind::Whole { data, trailers: None } => SizeHint::with_exact(data.len() as u64),
            ResponseBodyKind::Whole { data: read, .. } | ResponseBodyKind::Broken { read, .. } => at_least(read),
            ResponseBodyKind::Resumed { read, rest } => {
                let (read, rest) = (read.len() as u64, rest.size_hint());
                let mut hint = SizeHint::new();
                hint.set_lower(read.saturating_add(rest.lower()));
                if let Some(upper) = rest.upper() {
                    hint.set_upper(read.saturating_add(upper));
                }
                hint
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, Full};

    use super::*;

    #[tokio::test]
    async fn each_kind_of_body() {
        type Inner = Full<Bytes>;
        let data = Bytes::from_static(b"abc");
        let whole = ResponseBody::<Inner>::whole(data.clone(), None);
        assert_eq!(whole.size_hint().exact(), Some(3));
        let trailers = HeaderMap::from_iter([("x-a".parse().unwrap(), "1".parse().unwrap())]);
        let trailed = ResponseBody::<Inner>::whole(data.clone(), Some(Box::new(trailers)));
        assert_eq!((trailed.size_hint().exact(), trailed.size_hint().lower()), (None, 3));
        let trailed = trailed.collect().await.unwrap();
        assert_eq!(trailed.trailers().unwrap()["x-a"], "1");
        assert_eq!(trailed.to_bytes(), data);
        let resumed = ResponseBody::resumed(data.clone(), Box::pin(Inner::from("de")));
        assert_eq!(resumed.size_hint().exact(), Some(5));
        assert_eq!(resumed.collect().await.unwrap().to_bytes(), "abcde");
        let empty = ResponseBody::<Inner>::default();
        assert!(empty.is_end_stream() && empty.size_hint().exact() == Some(0));
    }
}
