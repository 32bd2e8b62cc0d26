//! Step 6 of a request: claim its key, and decide what follows from the answer.
//!
//! The order of the checks is fixed: a claim that an outer layer holds passes through, a token that has expired is
//! refused before it is claimed, and failing open comes last, so that a known run is never joined by an unprotected
//! one.
//!
//! A store that answers at once is asked by the response future itself (`future`). What has to be awaited comes here, as
//! `begin`.
//!
//! # Cancellation
//!
//! | the future is dropped | what is left |
//! | --- | --- |
//! | while the body is read | nothing |
//! | while the claim is on its way | the pending claim, released in the background |
//! | while it waits for another request | nothing |
//! | while the handler runs, or the claim ends | the future goes on as a background task; with `cancel_on_disconnect` the claim lapses |

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use tower_service::Service;

use super::{
    Exchange, KeyedRequest, PartialIdentity, RequestContext,
    receive::{Incoming, Received, pass},
    record::codec,
    respond::Advice,
};
use crate::{
    body::{BoxError, RequestBody, ResponseBody},
    engine::{Begun, NotRun, Operation},
    value::{Event, KeptAnswer, Mismatch, OnDuplicate, Origin, Refusal, is_failure, is_sealed},
};

/// What comes of a request that is not claimed, or whose claim was not granted.
pub(super) enum Decision<R: Body> {
    /// Its key is to be claimed.
    Claim,
    /// It is not to be claimed, or its claim was not granted.
    Instead(Instead<R>),
}

/// What a request receives that does not run.
pub(super) enum Instead<R: Body> {
    /// A response that is there.
    Response(Response<ResponseBody<R>>),
    /// That of the handler, without a claim.
    Pass,
    /// That of the handler, which sees that it is a duplicate.
    PassDuplicate(Option<Bytes>, Origin),
    /// The kept answer, if the application's hook admits it.
    Replay(Box<KeptAnswer>),
    /// A refusal with a new token.
    Renew,
}

/// What an edge of Tower receives.
type Begins<S, R, B> = Begun<Result<Response<ResponseBody<R>>, <S as Service<Request<RequestBody<B>>>>::Error>>;

impl Exchange {
    /// Decides about a request before its claim.
    pub(super) fn decide<R: Body>(&self, parts: &Parts, keyed: &KeyedRequest) -> Decision<R> {
        let outer = parts.extensions.get::<Operation>();
        if outer.is_some_and(|outer| *outer.record_key() == keyed.claim.key) {
            // The same layer further out has claimed it: here it would wait for itself.
            return Decision::Instead(Instead::Pass);
        }
        match (self.has_expired(keyed), keyed.only_observed) {
            (false, _) => Decision::Claim,
            (true, false) => Decision::Instead(Instead::Renew),
            (true, true) => Decision::Instead(self.observed(keyed, &NotRun::NotIssued)),
        }
    }

    /// Reports what a request would receive, and lets it through.
    fn observed<R: Body>(&self, KeyedRequest { claim, .. }: &KeyedRequest, why: &NotRun) -> Instead<R> {
        let key = &claim.key;
        let refusal = match why {
            NotRun::Settled(payload, _) => self.refuses_duplicate(payload.as_ref()),
            why => Some(why.refusal()),
        };
        self.engine.report(&match &refusal {
            Some(refusal) => Event::WouldRefuse { route: key.route(), key: Some(key), refusal },
            None => Event::WouldReplay { key },
        });
        Instead::Pass
    }

    /// Returns what a request receives that does not run.
    pub(super) fn instead<R: Body>(&self, parts: &Parts, keyed: &KeyedRequest, why: NotRun) -> Instead<R> {
        if keyed.only_observed {
            return self.observed(keyed, &why);
        }
        let context = keyed.context(parts);
        let RequestContext { key, head, .. } = context;
        Instead::Response(match why {
            NotRun::Unavailable { running: None, error } if self.fail_open.lets_through(&error) => {
                self.engine.report(&Event::FailedOpen { key, error: &error });
                return Instead::Pass;
            }
            // Not beside a run that is known to be going on.
            NotRun::Unavailable { running: Some(left), error } if self.fail_open.lets_through(&error) => {
                self.running(context, left)
            }
            NotRun::Unavailable { error, running: _ } => self.refuse(head, Some(key), &Refusal::from(&error)),
            NotRun::TooManyTasks(refusal) => self.refuse(head, Some(key), &refusal),
            NotRun::Running(left) => self.running(context, left),
            NotRun::Settled(payload, origin) if self.passes_duplicates(payload.as_ref()) => {
                return Instead::PassDuplicate(payload, origin);
            }
            NotRun::Settled(payload, _) => match self.awaits_hook(context, payload.as_ref()) {
                Some(kept) => return Instead::Replay(Box::new(kept)),
                None => self.duplicate(context, payload),
            },
            NotRun::Mismatch(mismatch) => {
                if mismatch == Mismatch::Caller {
                    self.warned.warn(Advice::OtherCaller, key.route());
                }
                self.refuse(head, Some(key), &mismatch.into())
            }
            NotRun::Incompatible => self.refuse(head, Some(key), &Refusal::RecordIncompatible),
            NotRun::OutcomeUnknown => self.refuse(head, Some(key), &Refusal::OutcomeUnknown),
            NotRun::NotIssued => return Instead::Renew,
        })
    }

    /// Returns whether the duplicate of a request that ended like this reaches the handler. One that failed without an
    /// answer, or whose answer cannot be read, has nothing that would tell the handler so.
    fn passes_duplicates(&self, payload: Option<&Bytes>) -> bool {
        matches!(self.policy.on_duplicate, OnDuplicate::PassThrough) && !is_failure(payload) && !is_sealed(payload)
    }

    /// Receives a request that is not received in place, and begins its operation.
    pub(super) async fn receive_and_begin<S, B, R>(
        self: Arc<Self>,
        mut service: S,
        parts: Parts,
        body: B,
        subject: PartialIdentity,
    ) -> Begins<S, R, B>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Send,
    {
        #[cfg(feature = "axum")]
        let (parts, subject) = match self.authenticated(parts, subject).await {
            Ok(authenticated) => authenticated,
            Err((sends, rejection)) => {
                drain_if(sends, body).await;
                return Begun::Ended(Ok(rejection.map(|data| ResponseBody::whole(data, None))));
            }
        };
        let only_observed = subject.only_observed;
        let Received { incoming, keyed } = match self.receive(&parts, body, subject).await {
            Ok(received) => received,
            Err(stop) => return Begun::Ended(Ok(self.stopped(&parts, stop))),
        };
        let keyed = match keyed {
            Ok(Some(keyed)) => keyed,
            Ok(None) => {
                self.report_keyless(&parts);
                return Begun::Ended(pass(&mut service, parts, incoming.body).await);
            }
            Err(refusal) if only_observed => {
                self.report_would_refuse(&parts, &refusal);
                return Begun::Ended(pass(&mut service, parts, incoming.body).await);
            }
            Err(refusal) => {
                let response = self.refuse(Some(&parts), None, &refusal);
                drain_if(incoming.sends, incoming.body).await;
                return Begun::Ended(Ok(response));
            }
        };
        let decision = self.decide(&parts, &keyed);
        self.begin(service, parts, incoming, keyed, decision).await
    }

    /// Does what was decided: claims and begins to run, or responds. A body that the client may still be sending is
    /// drained before a response that the handler does not give.
    pub(super) async fn begin<S, B, R>(
        self: Arc<Self>,
        mut service: S,
        parts: Parts,
        incoming: Incoming<B>,
        keyed: KeyedRequest,
        decision: Decision<R>,
    ) -> Begins<S, R, B>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        S::Future: Send + 'static,
        S::Error: Send + 'static,
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
        R: Body<Data = Bytes> + Send + 'static,
        R::Error: Send,
    {
        let instead = match decision {
            Decision::Instead(instead) => instead,
            Decision::Claim => match self.engine.admit(&keyed.claim).await {
                Ok(grant) => return Begun::Runs(self.run(&mut service, parts, incoming, keyed, grant)),
                Err(why) => self.instead(&parts, &keyed, why),
            },
        };
        let response = match instead {
            Instead::Response(response) => response,
            Instead::Renew => self.renew(keyed.context(&parts)).await,
            Instead::Replay(kept) => self.replay_hooked(&parts, &keyed.claim.key, *kept).await,
            Instead::Pass => return Begun::Ended(pass(&mut service, parts, incoming.body).await),
            Instead::PassDuplicate(payload, origin) => {
                return Begun::Ended(
                    self.pass_duplicate(&mut service, parts, incoming.body, keyed, payload, origin).await,
                );
            }
        };
        drain_if(incoming.sends, incoming.body).await;
        Begun::Ended(Ok(response))
    }

    /// Lets a duplicate reach the handler, with an `Operation` that says so. Nothing is recorded for it.
    async fn pass_duplicate<S, B, R>(
        self: &Arc<Self>,
        service: &mut S,
        mut parts: Parts,
        body: RequestBody<B>,
        KeyedRequest { claim, token, .. }: KeyedRequest,
        payload: Option<Bytes>,
        origin: Origin,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        R: Body,
    {
        let kept = payload.and_then(codec::decode);
        let operation = Operation::duplicate(claim.key, claim.claim, origin, self.engine.secret.clone(), kept);
        parts.extensions.insert(operation);
        let issued = self.insert_issuer(&mut parts, token.as_deref());
        let mut answer = pass(service, parts, body).await?;
        self.remove_replay_header(answer.headers_mut());
        if let Some(issued) = issued {
            issued.mark(answer.headers_mut());
        }
        Ok(answer)
    }
}

/// Drains the request body if the client may still be sending.
async fn drain_if<B>(sends: bool, body: B)
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    if sends {
        Box::pin(Exchange::drain(body)).await;
    }
}
