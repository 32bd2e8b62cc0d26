use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::Body;
use pin_project_lite::pin_project;

use super::{CollectError, Collected, Collector, Patience, ResponseBody};

pin_project! {
    /// The body of a response while it is read.
    ///
    /// It is boxed if its rest may have to be passed on after a look at its beginning. A body that says how long it is
    /// stays where it is, and is read to its end.
    #[project = HeldBodyProjected]
    pub(crate) enum HeldBody<B> {
        InPlace { #[pin] body: B },
        Boxed { body: Option<Pin<Box<B>>> },
    }
}

impl<B: Body<Data = Bytes>> HeldBody<B> {
    /// Holds a body, and creates what reads it up to `limit` bytes.
    pub(crate) fn new(body: B, limit: usize, patience: Patience) -> (Self, Collector) {
        match body.size_hint().exact() {
            // One that is longer than it says is the handler's own mistake, and cannot be passed on any more.
            Some(_) => (Self::InPlace { body }, Collector::new(usize::MAX, patience)),
            None => (Self::Boxed { body: Some(Box::pin(body)) }, Collector::new(limit, patience)),
        }
    }

    /// Reads on.
    pub(crate) fn poll(
        self: Pin<&mut Self>,
        collector: &mut Collector,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Collected, CollectError<B::Error>>> {
        match self.project() {
            HeldBodyProjected::InPlace { body } => collector.poll(body, cx),
            HeldBodyProjected::Boxed { body: Some(body) } => collector.poll(body.as_mut(), cx),
            HeldBodyProjected::Boxed { body: None } => panic!("polled after it was ready"),
        }
    }

    /// Returns a body whose beginning was read.
    pub(crate) fn resumed(self: Pin<&mut Self>, read: Bytes) -> ResponseBody<B> {
        match self.project() {
            HeldBodyProjected::Boxed { body } => match body.take() {
                Some(rest) => ResponseBody::resumed(read, rest),
                None => ResponseBody::whole(read, None),
            },
            // It has no limit, so it is never read in part.
            HeldBodyProjected::InPlace { .. } => ResponseBody::whole(read, None),
        }
    }
}
