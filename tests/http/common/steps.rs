//! Bodies and futures that go step by step.

use std::{
    collections::VecDeque,
    error::Error,
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame};

/// What a body does at one poll.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Pend,
    Data(&'static str),
    Trailer(&'static str, &'static str),
    Break,
    Panic(&'static str),
}

/// A body of steps.
#[derive(Debug)]
pub struct Steps(VecDeque<Step>);

impl Steps {
    pub fn new(steps: &[Step]) -> Self {
        Self(steps.iter().copied().collect())
    }
}

impl Body for Steps {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(step) = self.0.pop_front() else { return Poll::Ready(None) };
        Poll::Ready(Some(match step {
            Step::Pend => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            Step::Data(data) => Ok(Frame::data(Bytes::from_static(data.as_bytes()))),
            Step::Trailer(name, value) => {
                Ok(Frame::trailers([(name.parse().unwrap(), value.parse().unwrap())].into_iter().collect()))
            }
            Step::Break => Err("the body broke".into()),
            Step::Panic(what) => std::panic::panic_any(what),
        }))
    }
}

/// When a client leaves that has waited for a number of polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// As soon as the last of them has left something to wait for.
    Waiting,
    /// When that has happened, and nobody has looked at it yet.
    Woken,
}

/// Polls `future`, `times` at most and only when it was woken. `None`: that was not enough.
pub async fn polls<F: Future + Unpin>(future: &mut F, times: usize, leaving: Leaving) -> Option<F::Output> {
    let mut done = 0;
    poll_fn(|cx| {
        if done < times {
            done += 1;
            if let Poll::Ready(output) = Pin::new(&mut *future).poll(cx) {
                return Poll::Ready(Some(output));
            }
            if leaving == Leaving::Woken {
                return Poll::Pending;
            }
        }
        if done == times { Poll::Ready(None) } else { Poll::Pending }
    })
    .await
}
