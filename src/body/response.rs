use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The response body that a client receives: the inner service's own, a kept one, or one of the layer's.
    #[derive(Debug)]
    pub struct ResponseBody<B>
    where
        B: Body,
    {
        head: Option<Bytes>,
        trailers: Option<Box<HeaderMap>>,
        error: Option<B::Error>,
        rest: Option<Pin<Box<B>>>,
        #[pin]
        passed: Option<B>,
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
        Self { passed: Some(body), ..Self::whole(Bytes::new(), None) }
    }

    pub(crate) fn whole(data: Bytes, trailers: Option<Box<HeaderMap>>) -> Self {
        Self { head: Some(data).filter(|data| !data.is_empty()), trailers, error: None, rest: None, passed: None }
    }

    /// Creates a body of which the layer has read the beginning.
    pub(crate) fn resumed(read: Bytes, rest: Pin<Box<B>>) -> Self {
        Self { rest: Some(rest), ..Self::whole(read, None) }
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.error.is_some()
    }

    /// Creates a body that broke after the bytes that were read.
    pub(crate) fn broken(read: Bytes, error: B::Error) -> Self {
        Self { error: Some(error), ..Self::whole(read, None) }
    }
}

impl<B: Body<Data = Bytes>> Body for ResponseBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Some(passed) = this.passed.as_pin_mut() {
            return passed.poll_frame(cx);
        }
        if let Some(data) = this.head.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if let Some(rest) = this.rest {
            return rest.as_mut().poll_frame(cx);
        }
        if let Some(error) = this.error.take() {
            return Poll::Ready(Some(Err(error)));
        }
        Poll::Ready(this.trailers.take().map(|trailers| Ok(Frame::trailers(*trailers))))
    }

    fn is_end_stream(&self) -> bool {
        if let Some(passed) = &self.passed {
            return passed.is_end_stream();
        }
        self.head.is_none()
            && self.error.is_none()
            && self.trailers.is_none()
            && self.rest.as_ref().is_none_or(Body::is_end_stream)
    }

    /// Returns an exact size only if no trailers follow: a server that knows the length leaves trailers out.
    fn size_hint(&self) -> SizeHint {
        if let Some(passed) = &self.passed {
            return passed.size_hint();
        }
        let head = self.head.as_ref().map_or(0, Bytes::len) as u64;
        let rest = self.rest.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let mut hint = SizeHint::new();
        hint.set_lower(head.saturating_add(rest.lower()));
        let only_data = self.error.is_none() && self.trailers.is_none();
        if let Some(upper) = rest.upper().filter(|_| only_data) {
            hint.set_upper(head.saturating_add(upper));
        }
        hint
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
