//! Responses that the layer gives itself: refusals, replays, and answers to duplicates.
//!
//! Every refusal goes through `refusal`, so that each is reported as an event, carries `Retry-After` if it is
//! temporary, and can be rendered by the application. Every replay goes through `replay`, which adds the mark and
//! removes what the layer excludes today.
//!
//! | `on_duplicate` | an answer was kept | a tombstone |
//! | --- | --- | --- |
//! | replay | the answer, marked | 409 `response-not-retained` |
//! | reject | 409 `duplicate-request`, or `token-used` | the same |
//! | respond | the application's own; a kept failure is replayed | the application's own |
//! | pass through | the handler answers (`run`); a kept failure without an answer is refused | the handler answers |
//!
//! With a hook on replays (`hooked`), the answers of the first column pass it.
//!
//! A payload that is sealed is refused with 409 `answer-unreadable` in the first and the last two rows. Any other
//! payload that this process cannot read is treated as one that was not retained, never as a success.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header::EXPECT, request::Parts};
use http_body::Body;

use super::times::left_until;
use crate::{
    body::ResponseBody,
    http::{Exchange, RefusedRequest, RequestContext, Scoping, record::codec},
    problem::{self, Problem},
    value::{
        Duplicate, Event, KeptAnswer, OnDuplicate, RecordKey, Refusal, Reply, WhileRunning, is_failure, is_sealed,
    },
};

impl Exchange {
    /// Returns the response for a refusal, and reports it.
    pub(crate) fn refuse<B: Body>(
        &self,
        head: Option<&Parts>,
        key: Option<&RecordKey>,
        refusal: &Refusal,
    ) -> Response<ResponseBody<B>> {
        self.refusal(head, key, refusal).map(|body| ResponseBody::whole(body, None))
    }

    /// Returns the response for a refusal with its body in memory, and reports it.
    pub(crate) fn refusal(&self, head: Option<&Parts>, key: Option<&RecordKey>, refusal: &Refusal) -> Response<Bytes> {
        let of_head = if key.is_none() { head.map(|head| self.route_of(head)) } else { None };
        let route = key.map(RecordKey::route).or(of_head.as_deref()).or(self.fixed_route()).unwrap_or_default();
        self.engine.report(&Event::Refused { route, key, refusal });
        let mut response = self.rendered(head, key, refusal);
        problem::set_retry_after(&mut response, refusal, self.policy.retry_after);
        if self.sdk_hints {
            problem::set_sdk_hints(response.headers_mut(), refusal.is_retryable());
        }
        response
    }

    /// Sends a kept answer again, marked.
    ///
    /// The body is a slice of the payload, so a replay copies nothing. Headers that the layer excludes today are
    /// removed, since an earlier process may have kept them.
    pub(crate) fn replay<B: Body>(&self, key: &RecordKey, kept: KeptAnswer) -> Response<ResponseBody<B>> {
        let (completed, expires) = (kept.completed, kept.expires);
        let (status, age, trace) = (Some(kept.status), self.engine.observed_age(completed), kept.trace);
        self.engine.report(&Event::Replayed { key, status, age, trace });
        let failed = kept.has_failed();
        let mut trailers = kept.trailers;
        // What is left out today was perhaps kept by yesterday's process.
        if let Some(trailers) = &mut trailers {
            for name in &self.headers.not {
                trailers.remove(name);
            }
        }
        let mut response = Response::new(ResponseBody::whole(kept.body, trailers));
        *response.status_mut() = kept.status;
        *response.headers_mut() = kept.headers;
        let headers = response.headers_mut();
        for name in &self.headers.not {
            headers.remove(name);
        }
        if self.completed_header.is_some() || self.expires_header.is_some() {
            for (name, value) in self.time_fields(completed, expires) {
                headers.insert(name, value);
            }
        }
        if self.sdk_hints && failed {
            problem::set_sdk_hints(headers, false);
        }
        if let Some(marker) = &self.replay_header {
            headers.insert(marker.clone(), HeaderValue::from_static("true"));
        }
        response
    }

    /// Returns the response to a duplicate while the first request runs: 409, or the application's own.
    pub(crate) fn running<R: Body>(&self, context: RequestContext<'_>, left: Duration) -> Response<ResponseBody<R>> {
        let refusal = Refusal::RequestInProgress { left };
        match &self.policy.while_running {
            WhileRunning::Respond(reply) | WhileRunning::WaitThenRespond(_, reply) => {
                self.respond(context, None, reply, Some(&refusal))
            }
            WhileRunning::Refuse | WhileRunning::Wait(_) => self.refuse(context.head, Some(context.key), &refusal),
        }
    }

    /// Returns the response to a duplicate of a settled record, by the policy. `payload` is `None` for a tombstone.
    pub(crate) fn duplicate<R: Body>(
        &self,
        context: RequestContext<'_>,
        payload: Option<Bytes>,
    ) -> Response<ResponseBody<R>> {
        let RequestContext { key, token, head, .. } = context;
        if let Some(failed) = self.replaced(payload.as_ref(), token) {
            return self.replay(key, failed);
        }
        let unanswered = without_answer(payload.as_ref());
        match &self.policy.on_duplicate {
            OnDuplicate::Replay | OnDuplicate::PassThrough => match payload.and_then(codec::decode) {
                Some(kept) => self.replay(key, kept),
                None => self.refuse(head, Some(key), &unanswered),
            },
            OnDuplicate::Reject if self.tokens.is_some() => self.refuse(head, Some(key), &Refusal::TokenUsed),
            OnDuplicate::Reject => self.reject(head, key, payload),
            OnDuplicate::Respond(reply) => match payload.map(codec::decode) {
                Some(Some(failed)) if failed.has_failed() => self.replay(key, failed),
                // What cannot be read need not say that all is well.
                Some(None) => self.refuse(head, Some(key), &unanswered),
                kept => self.respond(context, kept.flatten().as_ref(), reply, None),
            },
        }
    }

    /// Returns the refusal that a duplicate of a settled record would receive, if it would receive no answer.
    pub(crate) fn refuses_duplicate(&self, payload: Option<&Bytes>) -> Option<Refusal> {
        let kept = || payload.cloned().and_then(codec::decode);
        match &self.policy.on_duplicate {
            OnDuplicate::Reject if self.tokens.is_some() => Some(Refusal::TokenUsed),
            OnDuplicate::Reject => Some(Refusal::DuplicateRequest),
            OnDuplicate::Respond(_) if payload.is_none() => None,
            OnDuplicate::PassThrough if !is_failure(payload) && !is_sealed(payload) => None,
            OnDuplicate::Replay | OnDuplicate::PassThrough | OnDuplicate::Respond(_) => {
                kept().is_none().then(|| without_answer(payload))
            }
        }
    }

    /// If the content is the key, the retention is a window, and the same content is welcome again after it.
    fn reject<R: Body>(
        &self,
        head: Option<&Parts>,
        key: &RecordKey,
        payload: Option<Bytes>,
    ) -> Response<ResponseBody<R>> {
        let mut response = self.refuse(head, Some(key), &Refusal::DuplicateRequest);
        if self.is_content() || self.policy.run.any_content {
            let expires = payload.and_then(codec::decode).and_then(|kept| kept.expires);
            problem::retry_after(response.headers_mut(), left_until(expires, self.policy.run.retention));
        }
        response
    }

    /// Gives an answer of the application's own, which says when to come again where `refusal` is one that passes.
    fn respond<B: Body>(
        &self,
        RequestContext { key, head, .. }: RequestContext<'_>,
        kept: Option<&KeptAnswer>,
        reply: &Reply,
        refusal: Option<&Refusal>,
    ) -> Response<ResponseBody<B>> {
        self.engine.report(&Event::Responded { key });
        let none = head.is_none().then(|| Request::new(()).into_parts().0);
        // A copy of the head exists if the layer has a reply (`looks_back`).
        let mut response = match head.or(none.as_ref()) {
            Some(head) => reply.to(&Duplicate { key, head, kept }),
            None => Response::new(Bytes::new()),
        };
        if let Some(refusal) = refusal {
            problem::set_retry_after(&mut response, refusal, self.policy.retry_after);
        }
        response.map(|body| ResponseBody::whole(body, None))
    }

    /// Returns the response for a refusal: the application's, or the problem document.
    pub(crate) fn rendered(&self, head: Option<&Parts>, key: Option<&RecordKey>, refusal: &Refusal) -> Response<Bytes> {
        let problem = self.problem(head, refusal);
        match (&self.render, head) {
            (Some(render), Some(head)) => render(&RefusedRequest { problem: &problem, head, key }),
            _ => problem.render(),
        }
    }

    /// Returns the problem of a refusal.
    pub(crate) fn problem<'a>(&'a self, head: Option<&'a Parts>, refusal: &'a Refusal) -> Problem<'a> {
        Problem {
            refusal,
            base: &self.problem_type_base,
            place: self.place_for(refusal),
            instance: self.problem_instance.as_deref().zip(head),
            link: self.problem_link,
        }
    }

    /// Returns where that belongs which a refused request lacks, or has in a wrong form.
    fn place_for(&self, refusal: &Refusal) -> Option<String> {
        match (refusal, &self.scoping, &self.tokens) {
            (Refusal::ScopeMissing | Refusal::ScopeInvalid { .. }, Scoping::Scope(scope), _) => scope.place(),
            (Refusal::KeyMissing | Refusal::KeyInvalid { .. }, _, None) => self.key.place(),
            (Refusal::TokenMissing, _, Some(rule)) => Some([self.key.place()?, rule.field.place()?].join(" or ")),
            _ => None,
        }
    }

    /// Returns whether something that the application gave looks at heads after the handler has had them.
    pub(crate) fn looks_back(&self) -> bool {
        self.render.is_some()
            || self.problem_instance.is_some()
            || matches!(self.policy.on_duplicate, OnDuplicate::Respond(_))
            || matches!(self.policy.while_running, WhileRunning::Respond(_) | WhileRunning::WaitThenRespond(..))
    }

    /// Returns whether a client waits for a word before it sends its body (RFC 9110, section 10.1.1).
    pub(crate) fn expects_continue(headers: &HeaderMap) -> bool {
        headers.contains_key(EXPECT)
    }
}

/// Returns why nothing can be sent again for a request that has ended.
fn without_answer(payload: Option<&Bytes>) -> Refusal {
    if is_failure(payload) {
        Refusal::HandlerFailed
    } else if is_sealed(payload) {
        Refusal::AnswerUnreadable
    } else {
        Refusal::ResponseNotRetained
    }
}
