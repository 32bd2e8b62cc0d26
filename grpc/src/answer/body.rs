use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The body of the handler's answer on its way to the core: untouched, read to its end, or read in part.
    pub struct AnswerBody<R: Body> {
        #[pin]
        kind: AnswerBodyKind<R>,
    }
}

pin_project! {
    #[project = AnswerBodyKindProjected]
    enum AnswerBodyKind<R: Body> {
        Passed { #[pin] body: R },
        Whole { data: Bytes, trailers: Option<Box<HeaderMap>> },
        Resumed { read: VecDeque<Bytes>, rest: Pin<Box<R>>, lower: u64 },
        Broken { data: Bytes, error: Option<R::Error> },
    }
}

impl<R: Body> AnswerBody<R> {
    pub(super) fn passed(body: R) -> Self {
        Self { kind: AnswerBodyKind::Passed { body } }
    }

    pub(super) fn whole(data: Bytes, trailers: Option<HeaderMap>) -> Self {
        Self { kind: AnswerBodyKind::Whole { data, trailers: trailers.map(Box::new) } }
    }

    /// Creates a body whose beginning was read. It is `lower` bytes long at least.
    pub(super) fn resumed(read: Vec<Bytes>, rest: Pin<Box<R>>, lower: usize) -> Self {
        let lower = u64::try_from(lower).unwrap_or(u64::MAX);
        Self { kind: AnswerBodyKind::Resumed { read: read.into(), rest, lower } }
    }

    /// Creates a body that broke after these bytes.
    pub(super) fn broken(data: Bytes, error: R::Error) -> Self {
        Self { kind: AnswerBodyKind::Broken { data, error: Some(error) } }
    }
}

fn take_data<E>(data: &mut Bytes) -> Option<Result<Frame<Bytes>, E>> {
    (!data.is_empty()).then(|| Ok(Frame::data(mem::take(data))))
}

impl<R: Body<Data = Bytes>> Body for AnswerBody<R> {
    type Data = Bytes;
    type Error = R::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, R::Error>>> {
        match self.project().kind.project() {
            AnswerBodyKindProjected::Passed { body } => body.poll_frame(cx),
            AnswerBodyKindProjected::Whole { data, trailers } => {
                let trailers = || trailers.take().map(|trailers| Ok(Frame::trailers(*trailers)));
                Poll::Ready(take_data(data).or_else(trailers))
            }
            AnswerBodyKindProjected::Resumed { read, rest, .. } => match read.pop_front() {
                Some(data) => Poll::Ready(Some(Ok(Frame::data(data)))),
                None => rest.as_mut().poll_frame(cx),
            },
            AnswerBodyKindProjected::Broken { data, error } => {
                Poll::Ready(take_data(data).or_else(|| error.take().map(Err)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            AnswerBodyKind::Passed { body } => body.is_end_stream(),
            AnswerBodyKind::Whole { data, trailers } => data.is_empty() && trailers.is_none(),
            AnswerBodyKind::Resumed { read, rest, .. } => read.is_empty() && rest.is_end_stream(),
            AnswerBodyKind::Broken { data, error } => data.is_empty() && error.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        match &self.kind {
            AnswerBodyKind::Passed { body } => return body.size_hint(),
            AnswerBodyKind::Whole { data, trailers: None } => return SizeHint::with_exact(data.len() as u64),
            AnswerBodyKind::Whole { data, .. } | AnswerBodyKind::Broken { data, .. } => {
                hint.set_lower(data.len() as u64);
            }
            AnswerBodyKind::Resumed { lower, .. } => hint.set_lower(*lower),
        }
        hint
    }
}

impl<R: Body> std::fmt::Debug for AnswerBody<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerBody").finish_non_exhaustive()
    }
}
