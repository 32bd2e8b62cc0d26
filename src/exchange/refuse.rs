use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header::EXPECT};
use http_body::Body;

use super::{
    Asked, Exchange,
    codec::{self, Kept},
};
use crate::{
    body::{BoxError, ResponseBody, drain},
    problem,
    value::{Event, OnDuplicate, Record, RecordKey, Refusal, Reply, State, WhileRunning},
};

/// How much of a refused body is read, so that a client that sends first and reads then gets to its answer.
const DRAIN_BYTES: usize = 8 * 1024 * 1024;
const DRAIN_TIME: Duration = Duration::from_secs(10);

impl Exchange {
    /// Tells a client of a refusal.
    pub(crate) fn refuse<B: Body>(&self, key: Option<&RecordKey>, refusal: &Refusal) -> Response<ResponseBody<B>> {
        self.refusal(key, refusal).map(|body| ResponseBody::whole(body, None))
    }

    /// The same, with a body that is there.
    pub(super) fn refusal(&self, key: Option<&RecordKey>, refusal: &Refusal) -> Response<Bytes> {
        self.engine.report(&Event::Refused { key, refusal });
        let mut response = self.rendered(refusal);
        problem::set_retry_after(&mut response, refusal, self.policy.retry_after);
        response
    }

    /// Sends a kept answer again, marked.
    pub(super) fn replay<B: Body>(&self, key: &RecordKey, kept: Kept) -> Response<ResponseBody<B>> {
        self.engine.report(&Event::Replayed { key });
        let mut response = Response::new(ResponseBody::whole(kept.body.data, kept.body.trailers));
        *response.status_mut() = kept.status;
        *response.headers_mut() = kept.headers;
        // What is left out today was perhaps kept by yesterday's process.
        for name in &self.headers.not {
            response.headers_mut().remove(name);
        }
        response.headers_mut().insert(self.marker.clone(), HeaderValue::from_static("true"));
        response
    }

    pub(super) fn running<R: Body>(&self, key: &RecordKey, left: Duration) -> Response<ResponseBody<R>> {
        let refusal = Refusal::RequestInProgress(left);
        match &self.policy.while_running {
            WhileRunning::Respond(reply) => self.respond(key, reply, Some(&refusal)),
            _ => self.refuse(Some(key), &refusal),
        }
    }

    pub(super) fn duplicate<R: Body>(&self, asked: &Asked, payload: Option<&Bytes>) -> Response<ResponseBody<R>> {
        let Asked { key, token, .. } = asked;
        if let Some(failed) = self.replaced(payload, token.as_deref()) {
            return self.replay(key, failed);
        }
        match &self.policy.on_duplicate {
            OnDuplicate::Replay => match payload.and_then(codec::decode) {
                Some(kept) => self.replay(key, kept),
                None => self.refuse(Some(key), &Refusal::ResponseNotRetained),
            },
            OnDuplicate::Reject if self.tokens.is_some() => self.refuse(Some(key), &Refusal::TokenUsed),
            OnDuplicate::Reject => self.refuse(Some(key), &Refusal::DuplicateRequest),
            OnDuplicate::Respond(reply) => self.respond(key, reply, None),
        }
    }

    /// The claim was lost by the time the handler ended: its client gets what the record says.
    pub(super) fn late<R: Body>(&self, asked: &Asked, record: Option<Box<Record>>) -> Response<ResponseBody<R>> {
        let Asked { key, claim, .. } = asked;
        let same = |record: &Record| record.fingerprint == claim.fingerprint && record.caller == claim.caller;
        match record.filter(|record| same(record)) {
            Some(record) if record.state == State::Settled => self.duplicate(asked, record.payload.as_ref()),
            Some(record) => self.running(key, record.lease_left),
            None => self.running(key, Duration::ZERO),
        }
    }

    /// Gives an answer of the application's own, which says when to come again where `refusal` is one that passes.
    pub(super) fn respond<B: Body>(
        &self,
        key: &RecordKey,
        reply: &Reply,
        refusal: Option<&Refusal>,
    ) -> Response<ResponseBody<B>> {
        self.engine.report(&Event::Responded { key });
        let mut response = reply.to(key);
        if let Some(refusal) = refusal {
            problem::set_retry_after(&mut response, refusal, self.policy.retry_after);
        }
        response.map(|body| ResponseBody::whole(body, None))
    }

    pub(super) fn rendered(&self, refusal: &Refusal) -> Response<Bytes> {
        match &self.render {
            Some(render) => render(refusal),
            None => problem::render(refusal, &self.problem_base),
        }
    }

    /// Whether a client waits for a word before it sends its body (RFC 9110, section 10.1.1).
    pub(crate) fn waits_for_a_word(headers: &HeaderMap) -> bool {
        headers.contains_key(EXPECT)
    }

    /// Reads what the client still sends, within bounds.
    pub(crate) async fn drain<B>(body: B)
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        // Whether it ended in time makes no difference to the answer.
        let _ = tokio::time::timeout(DRAIN_TIME, drain(body, DRAIN_BYTES)).await;
    }
}
