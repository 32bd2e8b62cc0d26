use std::time::Duration;

use bytes::Bytes;
use http::{
    Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE},
    response::Parts,
};
use http_body::Body;

use super::{Exchange, codec};
use crate::{
    body::{Collected, Excess, Failure, ResponseBody, collect},
    engine::Work,
    value::{Answer, Retain, Wishes},
};

/// An answer of the handler's, and what becomes of the record.
pub(super) struct Handled<B: Body> {
    pub(super) response: Response<ResponseBody<B>>,
    pub(super) fate: Fate,
}

/// What becomes of the record.
pub(super) enum Fate {
    /// Settled, with the answer or as a tombstone.
    Settle(Option<Bytes>, Duration),
    /// Released, so that the next try runs.
    Release,
}

impl Exchange {
    /// Takes the answer in, as far as it is to be kept, and decides what becomes of the record.
    pub(super) async fn take_in<B>(&self, response: Response<B>, work: &Work) -> Handled<B>
    where
        B: Body<Data = Bytes>,
    {
        let (parts, body) = response.into_parts();
        let wishes = work.wishes();
        if self.passes_through(&parts, &body, wishes) {
            let fate = self.fate(&parts, None, wishes);
            return Handled { response: Response::from_parts(parts, ResponseBody::passed(body)), fate };
        }
        // Boxed, so that its rest can be passed on after a look at its beginning.
        let mut body = Box::pin(body);
        let read = collect(body.as_mut(), self.policy.response_limit).await;
        // The handler's body may have been running until now.
        let wishes = work.wishes();
        match read {
            Ok(whole) => {
                let fate = self.fate(&parts, Some(&whole), wishes);
                let Collected { data, trailers } = whole;
                Handled { response: Response::from_parts(parts, ResponseBody::whole(data, trailers)), fate }
            }
            Err(failure) => {
                let fate = match &failure {
                    // It can still be undone.
                    Failure::Broken(..) if self.engine.transactions.is_some() => Fate::Release,
                    _ => self.fate(&parts, None, wishes),
                };
                let body = match failure {
                    Failure::TooLong(Excess { read }) => ResponseBody::resumed(read, body),
                    Failure::Broken(Excess { read }, error) => ResponseBody::broken(read, error),
                };
                Handled { response: Response::from_parts(parts, body), fate }
            }
        }
    }

    /// Whether the answer goes out as it comes: it is none to wait for, none to replay, or too long to be kept.
    fn passes_through(&self, parts: &Parts, body: &impl Body, wishes: Wishes) -> bool {
        let content_type = parts.headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let media_type = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        let is_event_stream = media_type.eq_ignore_ascii_case(b"text/event-stream");
        // A 304 tells the length of what it does not send.
        let told = parts.headers.get(CONTENT_LENGTH).filter(|_| !body.is_end_stream());
        let told = told.and_then(|value| value.to_str().ok()?.parse().ok());
        let length = told.unwrap_or(0).max(body.size_hint().lower());
        is_partial(parts.status)
            || wishes.stream
            || is_event_stream
            || length > u64::try_from(self.policy.response_limit).unwrap_or(u64::MAX)
    }

    /// `body` is `None` where it is not whole, or not held.
    fn fate(&self, parts: &Parts, body: Option<&Collected>, wishes: Wishes) -> Fate {
        let answer = Answer {
            status: parts.status,
            headers: &parts.headers,
            body: body.map_or(&b""[..], |body| &body.data),
            trailers: body.and_then(|body| body.trailers.as_ref()),
        };
        let by_policy = || parts.status == StatusCode::SWITCHING_PROTOCOLS || self.policy.keep.keeps(&answer);
        let retention = match wishes.retain {
            Some(Retain::For(retention)) => retention,
            None if by_policy() => self.policy.retention,
            Some(Retain::No) | None => return Fate::Release,
        };
        Fate::Settle(body.map(|body| codec::encode(parts.status, &parts.headers, body, &self.headers)), retention)
    }
}

/// An upgrade, or a part of an answer: neither can be replayed.
pub(super) fn is_partial(status: StatusCode) -> bool {
    matches!(status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::PARTIAL_CONTENT)
}
