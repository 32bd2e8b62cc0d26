//! Steps 3 to 6 of a request: receive the body, claim, and either run the handler or answer.
//!
//! `run` is the entry. `take` returns the body with the claim request in it, `claim_and_run` asks the engine and is the one
//! place where an `Admission` becomes a response.
//!
//! A refused request whose client may still be sending is drained before the response is sent (`drain_then`): a client
//! that writes first and reads then would otherwise see a reset connection in place of the refusal. The drain is
//! bounded in bytes and time.
//!
//! # Cancellation
//!
//! | the future is dropped | what is left |
//! | --- | --- |
//! | while the body is read | nothing |
//! | while the claim is on its way | the pending claim, released in the background |
//! | while it waits for another request | nothing |
//! | while the handler runs, or the claim ends | the future goes on as a background task; with `cancel_on_disconnect` the claim lapses |
//!
//! The order of the checks in `claim_and_run` is fixed: a claim that an outer layer holds passes through, a token that has
//! expired is refused before it is claimed, and failing open comes last, so that a known run is never joined by an
//! unprotected one.

use std::{future::Future, mem, pin::pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use tower_service::Service;

use super::{ClaimRequest, Exchange, PartialIdentity, record::codec, respond::Advice, settings::Stop};
use crate::{
    body::{
        BoxError, CollectError, Collected, Excess, IdleTimeout, Patience, RequestBody, ResponseBody, Watch, collect,
        is_over_a_limit,
    },
    engine::{Admission, Ask, Operation, Stage, Work},
    value::{Event, Mismatch, OnDuplicate, Origin, RecordKey, Refusal, is_failure},
};

/// The body that the handler is to get, the claim if there is one, and whether the client may still be sending.
type Received<B> = (RequestBody<B>, Result<Option<Box<ClaimRequest>>, Refusal>, bool);

impl Exchange {
    /// One request that has a key, from its body to its answer.
    ///
    /// What not every request needs is boxed where it is needed: each of them has room for what is not, and is moved
    /// with it.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    pub(crate) fn run<S, B, R>(
        self: Arc<Self>,
        work: Arc<Work>,
        mut inner: S,
        mut parts: Parts,
        body: B,
        subject: PartialIdentity,
    ) -> impl Future<Output = Result<Response<ResponseBody<R>>, S::Error>>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
        R: Body<Data = Bytes>,
    {
        async move {
            #[cfg(feature = "axum")]
            if subject.awaits_extractor() {
                return Box::pin(self.run_for_an_extractor(work, inner, parts, body, subject)).await;
            }
            let (body, claimed, sends) = match self.receive(&work, &parts, body, subject).await {
                Ok(taken) => taken,
                Err(stop) => return Ok(self.stopped(&parts, stop)),
            };
            self.claim_and_run(&work, &mut inner, &mut parts, body, claimed, sends).await
        }
    }

    /// The same for a request whose extractor has to run before it is known whose it is.
    #[cfg(feature = "axum")]
    async fn run_for_an_extractor<S, B, R>(
        self: Arc<Self>,
        work: Arc<Work>,
        mut inner: S,
        mut parts: Parts,
        body: B,
        subject: PartialIdentity,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
        R: Body<Data = Bytes>,
    {
        let subject = match self.authenticate(&mut parts, subject).await {
            Ok(subject) => subject,
            Err(answer) => {
                let sends = !Self::expects_continue(&parts.headers);
                let answer = answer.map(|data| ResponseBody::whole(data, None));
                return Self::drain_then(answer, RequestBody::passed(body), sends).await;
            }
        };
        let (body, claimed, sends) = match self.receive(&work, &parts, body, subject).await {
            Ok(taken) => taken,
            Err(stop) => return Ok(self.stopped(&parts, stop)),
        };
        self.claim_and_run(&work, &mut inner, &mut parts, body, claimed, sends).await
    }

    /// Claims, and runs the handler or says why not.
    ///
    /// Everything after the claim happens here: the handler, a duplicate that passes through, a refusal, a request that
    /// is let through since the store failed.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    fn claim_and_run<S, B, R>(
        self: &Arc<Self>,
        work: &Arc<Work>,
        inner: &mut S,
        parts: &mut Parts,
        body: RequestBody<B>,
        claimed: Result<Option<Box<ClaimRequest>>, Refusal>,
        sends: bool,
    ) -> impl Future<Output = Result<Response<ResponseBody<R>>, S::Error>>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
        R: Body<Data = Bytes>,
    {
        async move {
            let asked = match &claimed {
                Ok(Some(asked)) => &**asked,
                Ok(None) => return Box::pin(pass(inner, parts, body)).await,
                Err(refusal) => {
                    let answer = self.refuse(parts, None, refusal);
                    return Box::pin(Self::drain_then(answer, body, sends)).await;
                }
            };
            let ClaimRequest { key, claim, .. } = asked;
            let protected = |outer: &Operation| outer.record_key() == key;
            if parts.extensions.get().is_some_and(protected) {
                // The same layer further out has claimed it: here it would wait for itself.
                return Box::pin(pass(inner, parts, body)).await;
            }
            if self.has_expired(asked) {
                let answer = Box::pin(self.renew(parts, asked)).await;
                return Box::pin(Self::drain_then(answer, body, sends)).await;
            }
            let stage = if self.engine.cancel_on_disconnect { Stage::Attached } else { Stage::Claimed };
            let patience = self.policy.run.wait;
            let ask = Ask { work, key, claim, stage, party: &asked.party, patience, body: body.held() };
            let answer = match self.engine.admit(ask).await {
                Admission::Run(run) => return Box::pin(self.handle(run, work, asked, inner, parts, body)).await,
                Admission::Failed { running: None, error } if self.fail_open.lets_through(&error) => {
                    self.engine.report(&Event::FailedOpen { key, error: &error });
                    return Box::pin(pass(inner, parts, body)).await;
                }
                // Not beside a run that is known to be going on.
                Admission::Failed { running: Some(left), error } if self.fail_open.lets_through(&error) => {
                    self.running(parts, key, left)
                }
                Admission::Failed { error, .. } => self.refuse(parts, Some(key), &Refusal::from(&error)),
                Admission::Refused(refusal) => self.refuse(parts, Some(key), &refusal),
                Admission::Running(left) => self.running(parts, key, left),
                Admission::Settled(payload, origin) if self.passes_duplicates(payload.as_ref()) => {
                    return Box::pin(self.pass_duplicate(inner, parts, body, asked, payload, origin)).await;
                }
                Admission::Settled(payload, _) => self.duplicate(parts, asked, payload.as_ref()),
                Admission::Mismatch(mismatch) => self.mismatch(parts, key, mismatch),
                Admission::Incompatible => self.refuse(parts, Some(key), &Refusal::RecordIncompatible),
                Admission::OutcomeUnknown => self.refuse(parts, Some(key), &Refusal::OutcomeUnknown),
                Admission::NotIssued => Box::pin(self.renew(parts, asked)).await,
            };
            if sends {
                return Box::pin(Self::drain_then(answer, body, sends)).await;
            }
            Ok(answer)
        }
    }

    /// Whether the duplicate of a request that ended like this reaches the handler. One that failed without an answer
    /// has nothing that would tell the handler so.
    fn passes_duplicates(&self, payload: Option<&Bytes>) -> bool {
        matches!(self.policy.on_duplicate, OnDuplicate::PassThrough) && !is_failure(payload)
    }

    /// Lets a duplicate reach the handler, with an `Operation` that says so. Nothing is recorded for it.
    async fn pass_duplicate<S, B, R>(
        self: &Arc<Self>,
        inner: &mut S,
        parts: &mut Parts,
        body: RequestBody<B>,
        asked: &ClaimRequest,
        payload: Option<Bytes>,
        origin: Origin,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        R: Body,
    {
        let ClaimRequest { key, claim, token, .. } = asked;
        let kept = payload.as_ref().and_then(codec::decode);
        parts.extensions.insert(Operation::duplicate(key.clone(), claim, origin, self.engine.secret.clone(), kept));
        let issued = self.insert_issuer(parts, token.as_deref());
        let mut answer = pass(inner, parts, body).await?;
        self.remove_replay_header(answer.headers_mut());
        if let Some(issued) = issued {
            issued.mark(answer.headers_mut());
        }
        Ok(answer)
    }

    /// Refuses a request whose key belongs to another content or caller.
    fn mismatch<R: Body>(&self, parts: &Parts, key: &RecordKey, mismatch: Mismatch) -> Response<ResponseBody<R>> {
        if mismatch == Mismatch::Caller {
            self.warned.warn(Advice::OtherCaller, key.route());
        }
        self.refuse(parts, Some(key), &mismatch.into())
    }

    /// Drains the request body if the client may still be sending, and returns the response then.
    async fn drain_then<T, B, E>(answer: T, body: RequestBody<B>, sends: bool) -> Result<T, E>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        if sends {
            Self::drain(body).await;
        }
        Ok(answer)
    }

    /// As much of the body as the claim needs, the claim, and whether the client may still be sending.
    ///
    /// Three ways, from the cheapest: the body streams and nothing of it is read; a prefix of it is read for a token;
    /// all of it is read. The third component states whether the client may still be sending, so that a refusal drains
    /// the rest first.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    fn receive<B>(
        &self,
        work: &Arc<Work>,
        parts: &Parts,
        body: B,
        subject: PartialIdentity,
    ) -> impl Future<Output = Result<Received<B>, Stop>>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        async move {
            if self.streams(&subject) {
                let sends = !Self::expects_continue(&parts.headers);
                let body = RequestBody::watched(body, self.watch(work));
                return Ok((body, self.claim(parts, &Bytes::new(), subject), sends));
            }
            #[cfg(feature = "form")]
            if let Some(place) = self.looks_for(parts, &subject) {
                let (body, claimed) =
                    Box::pin(self.claim_by_prefix(parts, body, subject, place, self.watch(work))).await;
                // From a client that stands still nothing more is expected.
                let sends = !matches!(claimed, Err(Refusal::BodyTimeout));
                return Ok((body, claimed, sends));
            }
            let whole = self.read(parts, body).await?;
            if self.verify.is_some() {
                Box::pin(self.verified(parts, &whole.data)).await?;
            }
            let claimed = self.claim(parts, &whole.data, subject);
            Ok((RequestBody::whole(whole), claimed, false))
        }
    }

    /// Returns what notices that a streaming request breaks or stands still.
    fn watch(&self, work: &Arc<Work>) -> Watch {
        Watch::new(work.clone(), self.body_timeout)
    }

    /// The whole request body, or why not.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the body is longer than the limit, ends early, or stands still for too long. If it is too
    /// long, it is drained first, unless the client waits for `100 Continue` and has sent nothing.
    pub(super) async fn read<B>(&self, parts: &Parts, body: B) -> Result<Collected, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let limit = self.policy.request_limit;
        let mut body = pin!(body);
        match collect(body.as_mut(), limit, Patience::Idle(IdleTimeout::new(self.body_timeout))).await {
            Ok(body) => Ok(body),
            Err(CollectError::TooLong(Excess { read })) => {
                // A client whose body was read has had its word, and sends.
                if !read.is_empty() || !Self::expects_continue(&parts.headers) {
                    Box::pin(Self::drain(body)).await;
                }
                Err(Refusal::BodyTooLarge { limit: Some(limit) })
            }
            Err(CollectError::Stalled | CollectError::TooSlow(_)) => Err(Refusal::BodyTimeout),
            Err(CollectError::Broken(_, error)) => {
                if !is_over_a_limit(&*error.into()) {
                    return Err(Refusal::BodyIncomplete);
                }
                Box::pin(Self::drain(body)).await;
                Err(Refusal::BodyTooLarge { limit: None })
            }
        }
    }
}

/// Lets a request through unprotected.
pub(super) async fn pass<S, B, R>(
    inner: &mut S,
    parts: &mut Parts,
    body: RequestBody<B>,
) -> Result<Response<ResponseBody<R>>, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body,
{
    let request = whole_request(parts, body);
    Ok(inner.call(request).await?.map(ResponseBody::passed))
}

/// The request, of whose head nothing is left behind.
pub(super) fn whole_request<B>(parts: &mut Parts, body: B) -> Request<B> {
    let (nothing, ()) = Request::new(()).into_parts();
    Request::from_parts(mem::replace(parts, nothing), body)
}
