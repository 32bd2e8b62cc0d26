use std::{
    error::Error,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    task::{Context, Poll},
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
    mut patience: Patience,
) -> Result<Collected, CollectError<B::Error>>
where
    B: Body<Data = Bytes>,
{
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    let mut trailers: Option<Box<HeaderMap>> = None;
    if exceeds(body.size_hint().lower(), limit) {
        return Err(CollectError::TooLong(Excess { read: first }));
    }
    loop {
        let next = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Ready(next) => Poll::Ready(Some(next)),
            Poll::Pending if patience.is_over(cx) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        let next = next.await;
        if let Patience::Idle(idle) = &mut patience {
            idle.restart();
        }
        let frame = match next {
            Some(Some(Ok(frame))) => frame,
            Some(Some(Err(error))) => return Err(CollectError::Broken(Excess { read: join(first, more) }, error)),
            Some(None) => break,
            None if matches!(patience, Patience::Idle(_)) => return Err(CollectError::Stalled),
            None => return Err(CollectError::TooSlow(Excess { read: join(first, more) })),
        };
        match frame.into_data() {
            Ok(data) if first.is_empty() && more.is_empty() => first = data,
            Ok(data) => {
                if more.is_empty() {
                    more.reserve(expected(body.size_hint().lower(), first.len() + data.len(), limit));
                    more.extend_from_slice(&first);
                    first = Bytes::new();
                }
                more.extend_from_slice(&data);
            }
            Err(frame) => {
                if let Ok(fields) = frame.into_trailers() {
                    trailers.get_or_insert_default().extend(fields);
                }
            }
        }
        if first.len() + more.len() > limit {
            return Err(CollectError::TooLong(Excess { read: join(first, more) }));
        }
    }
    Ok(Collected { data: join(first, more), trailers })
}

/// Reads and drops up to `limit` bytes, so that the sender gets to reading its answer.
///
/// A body that an outer layer limits can still be read beyond that limit: each frame is then an error, of unknown size.
pub(crate) async fn drain<B>(body: B, limit: usize)
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body);
    let mut read = 0;
    while read <= limit && !body.is_end_stream() {
        read += match poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            Some(Err(error)) => {
                if !is_over_a_limit(&*error.into()) {
                    return;
                }
                ASSUMED_FRAME_SIZE
            }
            None => return,
        };
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

fn join(first: Bytes, more: BytesMut) -> Bytes {
    if more.is_empty() { first } else { more.freeze() }
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
