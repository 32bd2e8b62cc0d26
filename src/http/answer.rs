//! Step 8 of a request: collect the response, and decide what its record keeps.
//!
//! A response is read to its end before the client gets any of it, up to the response limit. Three kinds are passed on
//! instead, and leave a tombstone: a stream (an event stream, or as the handler says), a partial answer or an upgrade,
//! and one that is too long or takes longer than `stream_after`. For the last kind the part that was read is put in
//! front of the rest (`resumed`).
//!
//! What becomes of the record depends on status, headers, body and trailers, the policy, and what the handler has
//! directed. It is a `RecordAction`, and the only input of the steps that follow.
//!
//! # A token that is replaced
//!
//! With `TokenRule::replaces` a failed answer brings a new token. The old one is spent by that: the failed answer is
//! settled under it, without the new token in it. A client that lost the answer sends the old token again and gets the
//! answer with the same new token, which is derived and not stored.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CACHE_CONTROL, CONTENT_LENGTH},
    response::Parts,
};
use http_body::Body;

use super::{
    Exchange, MARKER, RequestContext, Scoping,
    record::{
        HeaderPolicy, codec,
        kept_failure::kept_failure,
        response_kind::{has_failed, is_event_stream, is_partial},
    },
    respond::Times,
};
use crate::{
    body::{BrokenFlag, CollectError, Collected, Excess, HeldBody, ResponseBody},
    engine::{Completion, RunState},
    token::PresentedToken,
    value::{
        Answer, Caller, HandlerDirectives, KeptAnswer, NotKept, OnDuplicate, Refusal, Retain, TraceContext, is_undone,
    },
};

/// What becomes of the record.
pub(crate) enum RecordAction {
    /// Settled, with the answer or as a tombstone.
    Settle(Result<Bytes, NotKept>, Duration),
    /// Settled with the answer, whose token is spent; once that is recorded, the answer brings this one.
    Replace(Bytes, Duration, HeaderValue),
    /// Released, so that the next try runs; with the status of the answer, if there is one.
    Release(Option<StatusCode>),
    /// Undone: nothing began.
    Undo,
}

/// The answer of a handler, with what becomes of its record.
pub(super) type Answered<B> = (Parts, ResponseBody<B>, RecordAction);

impl Exchange {
    /// A handler that passes on what others replayed has made an answer of its own.
    pub(super) fn remove_replay_header(&self, headers: &mut HeaderMap) {
        headers.remove(&MARKER);
        if let Some(marker) = self.replay_header.as_ref().filter(|&marker| *marker != MARKER) {
            headers.remove(marker);
        }
    }

    /// Returns why the answer is passed on as it comes: it is a stream, cannot be replayed, or is too long to be kept.
    pub(super) fn passes_through(
        &self,
        parts: &Parts,
        body: &impl Body,
        directives: HandlerDirectives,
    ) -> Option<NotKept> {
        // The `Content-Length` of a 304 is that of a body that it does not send.
        let told = parts.headers.get(CONTENT_LENGTH).filter(|_| !body.is_end_stream());
        let told = told.and_then(|value| value.to_str().ok()?.parse().ok());
        let length = told.unwrap_or(0).max(body.size_hint().lower());
        if is_partial(parts.status) {
            Some(NotKept::Partial)
        } else if directives.stream || is_event_stream(&parts.headers) {
            Some(NotKept::Stream)
        } else {
            let is_too_long = length > u64::try_from(self.policy.response_limit).unwrap_or(u64::MAX);
            is_too_long.then_some(NotKept::TooLarge)
        }
    }

    /// `body` says why it is not kept if it is not whole, or not held.
    ///
    /// In this order: what the handler has directed, then the policy, then the status. An answer that is not kept and
    /// says that nothing began (401, 407, 429) undoes the attempt, unless the handler has said that something began.
    ///
    /// The retention of a signed token's record is that of the token, whatever else is said: the token must not become
    /// usable again.
    pub(super) fn action(
        &self,
        parts: &Parts,
        body: Result<&Collected, NotKept>,
        directives: HandlerDirectives,
        context: RequestContext<'_>,
    ) -> RecordAction {
        let answer = Answer {
            status: parts.status,
            headers: &parts.headers,
            body: body.map_or(&b""[..], |body| &body.data),
            trailers: body.ok().and_then(|body| body.trailers.as_deref()),
        };
        let by_policy = || {
            parts.status == StatusCode::SWITCHING_PROTOCOLS
                || (self.policy.keep.keeps(&answer) && !self.is_of_nobody(parts.status, context))
        };
        let retention = match directives.retain {
            Some(Retain::For(retention)) => retention,
            None if by_policy() => self.policy.run.retention,
            Some(Retain::No) | None if is_undone(parts.status) && !directives.began => return RecordAction::Undo,
            Some(Retain::No) | None => return RecordAction::Release(Some(parts.status)),
        };
        let retention = self.kept_for(retention, context.token);
        RecordAction::Settle(body.map(|body| self.encoded(parts, body, retention, context.claim.trace)), retention)
    }

    /// Returns how long a record is kept: as long as its signed token, whatever the policy or the handler says.
    pub(super) fn kept_for(&self, retention: Duration, token: Option<&PresentedToken>) -> Duration {
        self.memory(token).unwrap_or(retention)
    }

    /// An answer that asks somebody without credentials to prove who it is. Kept, it would keep the owner out, who is
    /// about to send the same request with credentials.
    fn is_of_nobody(&self, status: StatusCode, context: RequestContext<'_>) -> bool {
        matches!(status, StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED)
            && matches!(self.scoping, Scoping::Credentials(_))
            && context.claim.caller == Caller::NONE
    }

    /// Returns what becomes of an answer that is not held. One that need not be a success must not become a tombstone
    /// where duplicates get an answer of the application's own, which is one of success.
    ///
    /// An application that answers duplicates itself answers them with a success. So an answer that is not known to be
    /// one is kept as a refusal, which a duplicate then receives.
    pub(super) fn action_unheld(
        &self,
        context: RequestContext<'_>,
        parts: &Parts,
        why: NotKept,
        directives: HandlerDirectives,
    ) -> RecordAction {
        let action = self.action(parts, Err(why), directives, context);
        let broken = why == NotKept::Broken;
        let responds = matches!(self.policy.on_duplicate, OnDuplicate::Respond(_));
        match action {
            RecordAction::Settle(Err(_), retention)
                if responds && (broken || has_failed(parts.status) || parts.status.is_redirection()) =>
            {
                RecordAction::Settle(
                    Ok(self.kept_refusal(context, &Refusal::ResponseNotRetained, retention)),
                    retention,
                )
            }
            action => action,
        }
    }

    /// A refusal as a kept answer.
    ///
    /// It is rendered now, by the application if it renders refusals, so that a replay sends what a refusal would have
    /// been at this moment.
    pub(super) fn kept_refusal(&self, context: RequestContext<'_>, refusal: &Refusal, retention: Duration) -> Bytes {
        // A renderer that panics in its turn must not cost the record.
        let rendered = catch_unwind(AssertUnwindSafe(|| self.rendered(context.head, Some(context.key), refusal)));
        let rendered = rendered.unwrap_or_else(|_| self.problem(None, refusal).render());
        let (parts, data) = rendered.into_parts();
        let body = Collected { data, trailers: None };
        let (times, trace) = (Times::now(Some(retention)), context.claim.trace);
        codec::encode(parts.status, &parts.headers, &body, &self.headers, times, trace)
    }

    /// Packs an answer for its record.
    fn encoded(&self, parts: &Parts, body: &Collected, retention: Duration, trace: Option<TraceContext>) -> Bytes {
        let times = Times::now(Some(retention));
        codec::encode(parts.status, &parts.headers, body, &self.headers, times, trace)
    }

    /// Keeps a failed answer with a new token, if that is wanted and there can be one; its own is spent by that.
    ///
    /// The new token is put into the answer only after the answer is recorded: if the record fails, the old token is
    /// still the valid one.
    pub(super) async fn replace(
        &self,
        parts: &mut Parts,
        body: &Collected,
        token: Option<&PresentedToken>,
        trace: Option<TraceContext>,
        action: RecordAction,
    ) -> RecordAction {
        let rule = self.tokens.as_ref().filter(|rule| rule.replaces && has_failed(parts.status));
        let (Some(rule), Some(token)) = (rule, token) else { return action };
        let Some((successor, kept)) = rule.successor(token).await else { return action };
        parts.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // What stands for the new token is kept, whatever the field is called.
        let headers = HeaderPolicy {
            also: [&self.headers.also[..], std::slice::from_ref(&rule.header)].concat(),
            ..self.headers.clone()
        };
        // The answer itself does not bring it: as long as nothing is recorded, the token that came is the valid one.
        let (status, mut fields, body) = kept_failure(parts, body);
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        fields.insert(rule.header.clone(), kept);
        let retention = self.kept_for(self.policy.run.retention, Some(token));
        let payload = codec::encode(status, &fields, &body, &headers, Times::now(Some(retention)), trace);
        RecordAction::Replace(payload, retention, successor)
    }

    /// Returns the kept failed answer of a token that was replaced, with the new token: a client that missed it gets it
    /// again.
    pub(super) fn replaced(&self, payload: Option<&Bytes>, token: Option<&PresentedToken>) -> Option<KeptAnswer> {
        let rule = self.tokens.as_ref().filter(|rule| rule.replaces)?;
        let mut kept = codec::decode(payload?.clone()).filter(KeptAnswer::has_failed)?;
        let successor = rule.successor_again(token?, kept.headers.get(&rule.header)?)?;
        kept.headers.insert(rule.header.clone(), successor);
        Some(kept)
    }

    /// Decides about a response whose body was not read to its end. What was read is put in front of the rest, and the
    /// client receives it as a stream.
    pub(super) fn read_in_part<B: Body<Data = Bytes>>(
        &self,
        context: RequestContext<'_>,
        directives: HandlerDirectives,
        head: Parts,
        error: CollectError<B::Error>,
        rest: Pin<&mut HeldBody<B>>,
    ) -> Answered<B> {
        let why = if matches!(error, CollectError::TooSlow(_)) { NotKept::TooSlow } else { NotKept::TooLarge };
        match error {
            CollectError::TooLong(Excess { read }) | CollectError::TooSlow(Excess { read }) => {
                let action = self.action_unheld(context, &head, why, directives);
                (head, rest.resumed(read), action)
            }
            CollectError::Stalled => unreachable!("an answer may stand still"),
            CollectError::Broken(Excess { read }, error) => {
                // What was done in a transaction can still be undone.
                let action = if self.engine.transactions.is_some() {
                    RecordAction::Release(None)
                } else {
                    self.action_unheld(context, &head, NotKept::Broken, directives)
                };
                (head, ResponseBody::broken(read, error), action)
            }
        }
    }

    /// Returns what is recorded.
    pub(super) fn completion(&self, action: RecordAction, token: Option<&PresentedToken>) -> Completion {
        match action {
            RecordAction::Settle(payload, retention) => Completion::Settle(payload, retention),
            RecordAction::Replace(payload, retention, _) => Completion::Settle(Ok(payload), retention),
            RecordAction::Release(answer) => {
                Completion::Release(self.kept_for(self.policy.released_for(answer), token))
            }
            RecordAction::Undo => Completion::Undo(self.kept_for(self.policy.run.retention, token)),
        }
    }

    /// A request that broke while the handler read it has failed, unless failures are kept or the handler wants its
    /// answer kept.
    ///
    /// Otherwise a handler that ignores the error of its body would have a success recorded for half a request.
    pub(super) fn unless_broken(
        &self,
        action: RecordAction,
        broken: Option<&BrokenFlag>,
        state: &RunState,
    ) -> RecordAction {
        let is_broken = broken.is_some_and(BrokenFlag::is_set);
        let fails = is_broken && !self.keeps_failures() && state.directives().retain.is_none();
        if fails { RecordAction::Release(None) } else { action }
    }

    /// Returns whether a run is recorded that failed without an answer. What a transaction has done is rolled back with
    /// its claim, whatever the policy keeps.
    fn keeps_failures(&self) -> bool {
        self.policy.run.keeps_panics() && self.engine.transactions.is_none()
    }

    /// Returns what becomes of the record if the handler gave no answer.
    pub(super) fn action_of_failure(&self, context: RequestContext<'_>) -> RecordAction {
        if !self.keeps_failures() {
            return RecordAction::Release(None);
        }
        let retention = self.kept_for(self.policy.run.retention, context.token);
        RecordAction::Settle(Ok(self.kept_refusal(context, &Refusal::HandlerFailed, retention)), retention)
    }
}
