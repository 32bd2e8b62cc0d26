use std::{
    collections::VecDeque,
    fmt,
    future::poll_fn,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use super::IdleTimeout;

/// A request body whose beginning was read: the frames that were read, and then the rest as it comes.
///
/// It is what the service behind a [`MessageLogLayer`](crate::MessageLogLayer) receives.
pub struct BufferedBody<B: Body> {
    read: VecDeque<Bytes>,
    rest: Rest<B>,
}

enum Rest<B: Body> {
    /// The body has ended, with these trailers.
    Ended(Option<HeaderMap>),
    /// The body goes on.
    More(Pin<Box<B>>),
    /// The body broke.
    Broken(Option<B::Error>),
}

/// The body is in a box, and the error is never pinned.
impl<B: Body> Unpin for BufferedBody<B> {}

impl<B: Body> fmt::Debug for BufferedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.rest {
            Rest::Ended(_) => "BufferedBody(whole)",
            Rest::More(_) => "BufferedBody(resumed)",
            Rest::Broken(_) => "BufferedBody(broken)",
        })
    }
}

/// An empty body.
impl<B: Body> Default for BufferedBody<B> {
    fn default() -> Self {
        Self { read: VecDeque::new(), rest: Rest::Ended(None) }
    }
}

impl<B: Body<Data = Bytes>> BufferedBody<B> {
    /// Reads a body until it has ended or more than `limit` bytes of it are there, or until no part of it has arrived
    /// for as long as `idle` permits.
    pub(crate) async fn read(body: Pin<Box<B>>, limit: usize, mut idle: IdleTimeout) -> Self {
        let mut buffered = Self { read: VecDeque::new(), rest: Rest::More(body) };
        let mut left = limit;
        poll_fn(|cx| buffered.poll_read(&mut left, &mut idle, cx)).await;
        buffered
    }

    fn poll_read(&mut self, left: &mut usize, idle: &mut IdleTimeout, cx: &mut Context<'_>) -> Poll<()> {
        while let Rest::More(body) = &mut self.rest {
            if body.is_end_stream() {
                self.rest = Rest::Ended(None);
                break;
            }
            let frame = match body.as_mut().poll_frame(cx) {
                Poll::Ready(frame) => frame,
                Poll::Pending if idle.has_elapsed(cx) => break,
                Poll::Pending => return Poll::Pending,
            };
            idle.restart();
            match frame.map(|frame| frame.map(Frame::into_data)) {
                None => self.rest = Rest::Ended(None),
                Some(Err(error)) => self.rest = Rest::Broken(Some(error)),
                Some(Ok(Ok(data))) => {
                    let over = data.len() > *left;
                    *left = left.saturating_sub(data.len());
                    self.read.push_back(data);
                    if over {
                        break;
                    }
                }
                Some(Ok(Err(frame))) => self.rest = Rest::Ended(frame.into_trailers().ok()),
            }
        }
        Poll::Ready(())
    }

    /// Returns the beginning of the body, up to `limit` bytes, and whether that is all of it. A body of one frame is
    /// not copied.
    pub(crate) fn beginning(&self, limit: usize) -> (Bytes, bool) {
        let length = self.read.iter().map(Bytes::len).sum::<usize>();
        let is_whole = matches!(self.rest, Rest::Ended(_)) && length <= limit;
        if let (Some(only), 1) = (self.read.front(), self.read.len()) {
            return (only.slice(..only.len().min(limit)), is_whole);
        }
        let mut beginning = BytesMut::with_capacity(length.min(limit));
        for data in &self.read {
            beginning.extend_from_slice(&data[..data.len().min(limit - beginning.len())]);
        }
        (beginning.freeze(), is_whole)
    }
}

impl<B: Body<Data = Bytes>> Body for BufferedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if let Some(data) = this.read.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match &mut this.rest {
            Rest::Ended(trailers) => Poll::Ready(trailers.take().map(|trailers| Ok(Frame::trailers(trailers)))),
            Rest::More(body) => body.as_mut().poll_frame(cx),
            Rest::Broken(error) => Poll::Ready(mem::take(error).map(Err)),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty()
            && match &self.rest {
                Rest::Ended(trailers) => trailers.is_none(),
                Rest::More(body) => body.is_end_stream(),
                Rest::Broken(error) => error.is_none(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        let read = self.read.iter().map(Bytes::len).sum::<usize>() as u64;
        let rest = match &self.rest {
            Rest::Ended(None) => SizeHint::with_exact(0),
            // A client that forwards the request and knows its length leaves trailers out.
            Rest::Ended(Some(_)) | Rest::Broken(_) => SizeHint::new(),
            Rest::More(body) => body.size_hint(),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(read));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, time::Duration};

    use futures_util::{StreamExt, stream};
    use http_body_util::{BodyExt, StreamBody};

    use super::*;

    fn data(text: &'static str) -> Frame<Bytes> {
        Frame::data(Bytes::from_static(text.as_bytes()))
    }

    fn trailers() -> Frame<Bytes> {
        Frame::trailers(HeaderMap::from_iter([("x-a".parse().unwrap(), "1".parse().unwrap())]))
    }

    fn whole(
        frames: impl IntoIterator<Item = Frame<Bytes>>,
    ) -> Pin<Box<impl Body<Data = Bytes, Error = &'static str>>> {
        body(frames.into_iter().map(Ok).collect())
    }

    fn body(
        frames: Vec<Result<Frame<Bytes>, &'static str>>,
    ) -> Pin<Box<impl Body<Data = Bytes, Error = &'static str>>> {
        Box::pin(StreamBody::new(stream::iter(frames)))
    }

    fn idle() -> IdleTimeout {
        IdleTimeout::new(Duration::from_secs(1))
    }

    #[tokio::test]
    async fn a_whole_body_is_read_and_passed_on_with_its_trailers() {
        let buffered = BufferedBody::read(whole([data("ab"), data("c"), trailers()]), 3, idle()).await;
        assert_eq!(buffered.beginning(3), (Bytes::from("abc"), true));
        assert_eq!((buffered.size_hint().lower(), buffered.size_hint().upper()), (3, None));
        let collected = buffered.collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["x-a"], "1");
        assert_eq!(collected.to_bytes(), "abc");
        assert!(BufferedBody::read(whole([]), 3, idle()).await.is_end_stream());
    }

    #[tokio::test]
    async fn a_long_body_is_read_up_to_the_limit_and_passed_on_whole() {
        let buffered = BufferedBody::read(whole([data("ab"), data("cd"), data("ef")]), 3, idle()).await;
        assert_eq!(buffered.beginning(3), (Bytes::from("abc"), false));
        assert_eq!(buffered.collect().await.unwrap().to_bytes(), "abcdef");
        let buffered = BufferedBody::read(whole([data("abcdef")]), 3, idle()).await;
        assert_eq!(buffered.beginning(3), (Bytes::from("abc"), false));
    }

    #[tokio::test]
    async fn a_broken_body_is_passed_on_broken() {
        let mut buffered = BufferedBody::read(body(vec![Ok(data("ab")), Err("broken")]), 9, idle()).await;
        assert_eq!(buffered.beginning(9), (Bytes::from("ab"), false));
        assert_eq!(buffered.frame().await.unwrap().unwrap().into_data().unwrap(), "ab");
        assert!(!buffered.is_end_stream());
        assert_eq!(buffered.frame().await.unwrap().unwrap_err(), "broken");
        assert!(buffered.frame().await.is_none() && buffered.is_end_stream());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stands_still_is_passed_on_as_it_is() {
        let first = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"ab")))]);
        let slow = Box::pin(StreamBody::new(first.chain(stream::pending())));
        let buffered = BufferedBody::read(slow, 9, idle()).await;
        assert_eq!(buffered.beginning(9), (Bytes::from("ab"), false));
        assert!(!buffered.is_end_stream());
    }
}
