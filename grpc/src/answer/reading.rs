use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode, response::Parts};
use http_body::Body;
use tokio::time::{Sleep, sleep};
use tower_idempotency::Operation;

use super::AnswerBody;
use crate::{
    codes,
    method::Settings,
    request::{FrameScan, PREFIX},
};

/// An answer while it is read.
///
/// It is a stream as soon as a second message begins, or if it has not ended some time after its head.
pub(super) struct Reading<R> {
    answer: Option<(Parts, Pin<Box<R>>)>,
    read: Vec<Bytes>,
    scan: FrameScan,
    operation: Operation,
    limit: usize,
    stream_after: Duration,
    /// Runs once the answer has paused.
    end: Option<Pin<Box<Sleep>>>,
}

impl<R: Body<Data = Bytes>> Reading<R> {
    pub(super) fn new(response: Response<R>, settings: &Settings, operation: Operation) -> Self {
        let (parts, body) = response.into_parts();
        Self {
            answer: Some((parts, Box::pin(body))),
            read: Vec::new(),
            scan: FrameScan::default(),
            operation,
            limit: settings.response_limit,
            stream_after: settings.stream_after,
            end: None,
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Response<AnswerBody<R>>> {
        let Some((mut parts, mut body)) = self.answer.take() else { panic!("polled after it was ready") };
        loop {
            match body.as_mut().poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        self.scan.advance(&data);
                        self.read.push(data);
                        if self.scan.is_stream() {
                            return self.stream(parts, body);
                        }
                        if let Some(first) = self.scan.first().filter(|first| first.length > self.limit) {
                            let lower = PREFIX.saturating_add(first.length);
                            let body = AnswerBody::resumed(std::mem::take(&mut self.read), body, lower);
                            return Poll::Ready(Response::from_parts(parts, body));
                        }
                    }
                    Err(frame) => {
                        let Ok(trailers) = frame.into_trailers() else { continue };
                        parts.status = codes::of(&trailers).map_or(UNKNOWN, codes::counts_as);
                        let body = AnswerBody::whole(self.take_read(), Some(trailers));
                        return Poll::Ready(Response::from_parts(parts, body));
                    }
                },
                Poll::Ready(Some(Err(error))) => {
                    let body = AnswerBody::broken(self.take_read(), error);
                    return Poll::Ready(Response::from_parts(parts, body));
                }
                Poll::Ready(None) => {
                    parts.status = UNKNOWN;
                    return Poll::Ready(Response::from_parts(parts, AnswerBody::whole(self.take_read(), None)));
                }
                Poll::Pending => {
                    let end = self.end.get_or_insert_with(|| Box::pin(sleep(self.stream_after)));
                    if end.as_mut().poll(cx).is_ready() {
                        return self.stream(parts, body);
                    }
                    self.answer = Some((parts, body));
                    return Poll::Pending;
                }
            }
        }
    }

    /// Hands the answer on as a stream: it leaves a tombstone.
    fn stream(&mut self, parts: Parts, body: Pin<Box<R>>) -> Poll<Response<AnswerBody<R>>> {
        self.operation.stream();
        let body = AnswerBody::resumed(std::mem::take(&mut self.read), body, 0);
        Poll::Ready(Response::from_parts(parts, body))
    }

    fn take_read(&mut self) -> Bytes {
        let mut read = std::mem::take(&mut self.read);
        match (read.pop(), read.is_empty()) {
            (Some(only), true) => only,
            (Some(last), false) => {
                read.push(last);
                let mut whole = BytesMut::with_capacity(read.iter().map(Bytes::len).sum());
                for part in read {
                    whole.extend_from_slice(&part);
                }
                whole.freeze()
            }
            (None, _) => Bytes::new(),
        }
    }
}

/// An answer that does not say how its call ended.
const UNKNOWN: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
