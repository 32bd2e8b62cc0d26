use std::{
    error::Error,
    future::{Future, poll_fn},
    mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::LengthLimitError;
use tokio::time::Sleep;

use super::{BoxError, IdleTimeout};

/// The assumed size of a frame of unknown size, in bytes.
const ASSUMED_FRAME_SIZE: usize = 8 * 1024;

/// A whole body.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    pub(crate) data: Bytes,
    pub(crate) trailers: Option<Box<HeaderMap>>,
}

/// The bytes that were read of a body that is not whole.
#[derive(Debug)]
pub(crate) struct Excess {
    pub(crate) read: Bytes,
}

/// The reason why a body is not whole.
#[derive(Debug)]
pub(crate) enum CollectError<E> {
    /// The body is longer than the limit; the rest has not been read.
    TooLong(Excess),
    /// The body broke after the bytes that were read.
    Broken(Excess, E),
    /// The body had not ended when the time was over; the rest has not been read.
    TooSlow(Excess),
    /// No frame arrived within the idle timeout.
    Stalled,
}

/// The time that a body may take.
pub(crate) enum Patience {
    /// No limit.
    Endless,
    /// The time until this timer fires.
    Until(Pin<Box<Sleep>>),
    /// The time between two frames.
    Idle(IdleTimeout),
}

impl Patience {
    fn is_over(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Self::Endless => false,
            Self::Until(end) => end.as_mut().poll(cx).is_ready(),
            Self::Idle(idle) => idle.has_elapsed(cx),
        }
    }
}

/// Reads a body to its end, up to `limit` bytes, for as long as `patience` allows. A body of one frame is not copied.
pub(crate) async fn collect<B>(
    mut body: Pin<&mut B>,
    limit: usize,
    patience: Patience,
) -> Result<Collected, CollectError<B::Error>>
where
    B: Body<Data = Bytes>,
{
    let mut collector = Collector::new(limit, patience);
    poll_fn(|cx| collector.poll(body.as_mut(), cx)).await
}

/// What was read of a body so far.
pub(crate) struct Collector {
    limit: usize,
    patience: Patience,
    first: Bytes,
    more: BytesMut,
    trailers: Option<Box<HeaderMap>>,
}

impl Collector {
    pub(crate) fn new(limit: usize, patience: Patience) -> Self {
        Self { limit, patience, first: Bytes::new(), more: BytesMut::new(), trailers: None }
    }

    /// Reads on, as [`collect`] does. After it was ready it is empty.
    pub(crate) fn poll<B: Body<Data = Bytes>>(
        &mut self,
        mut body: Pin<&mut B>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Collected, CollectError<B::Error>>> {
        if self.length() == 0 && exceeds(body.size_hint().lower(), self.limit) {
            return Poll::Ready(Err(CollectError::TooLong(self.excess())));
        }
        loop {
            let frame = match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(CollectError::Broken(self.excess(), error)));
                }
                Poll::Ready(None) => break,
                Poll::Pending if !self.patience.is_over(cx) => return Poll::Pending,
                Poll::Pending if matches!(self.patience, Patience::Idle(_)) => {
                    return Poll::Ready(Err(CollectError::Stalled));
                }
                Poll::Pending => return Poll::Ready(Err(CollectError::TooSlow(self.excess()))),
            };
            if let Patience::Idle(idle) = &mut self.patience {
                idle.restart();
            }
            match frame.into_data() {
                Ok(data) => self.add(data, body.size_hint().lower()),
                Err(frame) => {
                    if let Ok(fields) = frame.into_trailers() {
                        self.trailers.get_or_insert_default().extend(fields);
                    }
                }
            }
            if self.length() > self.limit {
                return Poll::Ready(Err(CollectError::TooLong(self.excess())));
            }
            if body.is_end_stream() {
                break;
            }
        }
        Poll::Ready(Ok(Collected { data: self.excess().read, trailers: self.trailers.take() }))
    }

    fn length(&self) -> usize {
        self.first.len() + self.more.len()
    }

    /// Adds a frame. `left` is how much is still to come at least, in bytes.
    fn add(&mut self, data: Bytes, left: u64) {
        if self.first.is_empty() && self.more.is_empty() {
            self.first = data;
            return;
        }
        if self.more.is_empty() {
            self.more.reserve(expected(left, self.first.len() + data.len(), self.limit));
            self.more.extend_from_slice(&mem::take(&mut self.first));
        }
        self.more.extend_from_slice(&data);
    }

    /// Takes what was read.
    fn excess(&mut self) -> Excess {
        let first = mem::take(&mut self.first);
        Excess { read: if self.more.is_empty() { first } else { mem::take(&mut self.more).freeze() } }
    }
}

/// Reads and drops up to a number of bytes, so that the sender gets to reading its answer.
///
/// A body that an outer layer limits can still be read beyond that limit: each frame is then an error, of unknown size.
pub(crate) struct Drain {
    left: usize,
}

impl Drain {
    pub(crate) fn new(limit: usize) -> Self {
        Self { left: limit }
    }

    /// Reads on. It is ready if the body has ended or broken, or as many bytes were read.
    pub(crate) fn poll<B>(&mut self, mut body: Pin<&mut B>, cx: &mut Context<'_>) -> Poll<()>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        while !body.is_end_stream() {
            let read = match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
                Some(Err(error)) => {
                    if !is_over_a_limit(&*error.into()) {
                        break;
                    }
                    ASSUMED_FRAME_SIZE
                }
                None => break,
            };
            match self.left.checked_sub(read) {
                Some(left) => self.left = left,
                None => break,
            }
        }
        Poll::Ready(())
    }
}

/// Returns whether a body broke because an outer layer limits it.
pub(crate) fn is_over_a_limit(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn exceeds(length: u64, limit: usize) -> bool {
    usize::try_from(length).map_or(true, |length| length > limit)
}

/// Returns the capacity for the whole body if its length is known, and never more than the limit.
fn expected(left: u64, read: usize, limit: usize) -> usize {
    usize::try_from(left).unwrap_or(limit).saturating_add(read).min(limit).max(read)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::pin, time::Duration};

    use http_body::Frame;
    use http_body_util::{BodyExt, Full, StreamBody};

    use super::*;

    fn chunks(chunks: &[&'static str]) -> impl Body<Data = Bytes, Error = &'static str> + use<> {
        let frames: Vec<_> = chunks
            .iter()
            .map(|chunk| match *chunk {
                "break" => Err("broken"),
                "trailers" => {
                    Ok(Frame::trailers(HeaderMap::from_iter([("x-a".parse().unwrap(), "1".parse().unwrap())])))
                }
                data => Ok(Frame::data(Bytes::from_static(data.as_bytes()))),
            })
            .collect();
        StreamBody::new(Iter(frames.into_iter()))
    }

    struct Iter<I>(I);

    impl<I: Iterator + Unpin> futures_core::Stream for Iter<I> {
        type Item = I::Item;

        fn poll_next(mut self: Pin<&mut Self>, _: &mut std::task::Context<'_>) -> std::task::Poll<Option<Self::Item>> {
            std::task::Poll::Ready(self.0.next())
        }
    }

    #[tokio::test]
    async fn whole_bodies() {
        let whole = collect(pin!(chunks(&["ab", "c", "de", "trailers"])), 5, Patience::Endless).await.unwrap();
        assert_eq!(whole.data, "abcde");
        assert_eq!(whole.trailers.unwrap()["x-a"], "1");
        let empty = collect(pin!(chunks(&[])), 0, Patience::Endless).await.unwrap();
        assert!(empty.data.is_empty() && empty.trailers.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_its_time_but_not_stand_still() {
        let second = std::time::Duration::from_secs(1);
        let slow = |pause: u32| {
            let frames = futures_util::stream::unfold(0, move |at| async move {
                tokio::time::sleep(second * pause).await;
                (at < 5).then(|| (Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x"))), at + 1))
            });
            StreamBody::new(frames)
        };
        let idle = || IdleTimeout::new(3 * second);
        assert_eq!(collect(pin!(slow(2)), 9, Patience::Idle(idle())).await.unwrap().data, "xxxxx");
        let began = tokio::time::Instant::now();
        assert!(matches!(collect(pin!(slow(4)), 9, Patience::Idle(idle())).await, Err(CollectError::Stalled)));
        assert_eq!(began.elapsed(), 3 * second);
    }

    #[tokio::test]
    async fn one_frame_is_not_copied() {
        let data = Bytes::from(vec![7; 100]);
        let whole =
            collect(pin!(Full::new(data.clone()).map_err(|_: Infallible| ())), 100, Patience::Endless).await.unwrap();
        assert_eq!(whole.data.as_ptr(), data.as_ptr());
    }

    #[tokio::test]
    async fn too_long_and_broken() {
        let Err(CollectError::TooLong(excess)) =
            collect(pin!(chunks(&["abc", "def", "g"])), 5, Patience::Endless).await
        else {
            panic!()
        };
        assert_eq!(excess.read, "abcdef");
        let Err(CollectError::TooLong(excess)) =
            collect(pin!(Full::new(Bytes::from_static(b"abcdef"))), 5, Patience::Endless).await
        else {
            panic!()
        };
        assert!(excess.read.is_empty());
        let Err(CollectError::Broken(excess, error)) =
            collect(pin!(chunks(&["ab", "c", "break"])), 5, Patience::Endless).await
        else {
            panic!()
        };
        assert_eq!((&*excess.read, error), (&b"abc"[..], "broken"));
    }

    #[tokio::test(start_paused = true)]
    async fn too_slow() {
        use futures_util::StreamExt;

        let first = Frame::data(Bytes::from_static(b"ab"));
        let first = futures_util::stream::iter([Ok::<_, Infallible>(first)]);
        let slow = StreamBody::new(first.chain(futures_util::stream::pending()));
        let time = Box::pin(tokio::time::sleep(Duration::from_secs(1)));
        let Err(CollectError::TooSlow(excess)) = collect(pin!(slow), 5, Patience::Until(time)).await else { panic!() };
        assert_eq!(excess.read, "ab");
        let time = Box::pin(tokio::time::sleep(Duration::ZERO));
        assert_eq!(collect(pin!(chunks(&["ab", "c"])), 5, Patience::Until(time)).await.unwrap().data, "abc");
    }
}
