use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use tower_service::Service;

use super::{
    Asked, Exchange, Operation, Subject,
    answer::{Fate, Handled},
    codec,
};
use crate::{
    body::{BoxError, Collected, Excess, Failure, RequestBody, ResponseBody, collect, is_over_a_limit},
    engine::{Admission, CatchUnwind, Ending, Run, Stage, Work},
    problem,
    value::{Event, OnDuplicate, Record, RecordKey, Refusal, State, StoreErrorKind, WhileRunning},
};

impl Exchange {
    /// One request that has a key, from its body to its answer.
    pub(crate) async fn run<S, B, R>(
        self: Arc<Self>,
        work: Arc<Work>,
        mut inner: S,
        parts: Parts,
        body: B,
        subject: Subject,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
        R: Body<Data = Bytes>,
    {
        let (body, claimed, sends) = match self.take(&parts, body, subject).await {
            Ok(taken) => taken,
            Err(refusal) => return Ok(self.refuse(None, &refusal)),
        };
        let asked = match claimed {
            Ok(Some(asked)) => asked,
            Ok(None) => return pass(&mut inner, parts, body).await,
            Err(refusal) => {
                let answer = self.refuse(None, &refusal);
                if sends {
                    Self::drain(body).await;
                }
                return Ok(answer);
            }
        };
        let Asked { key, claim, .. } = &asked;
        let protected = |outer: &Operation| outer.record_key() == key;
        if parts.extensions.get().is_some_and(protected) {
            // The same layer further out has claimed it: here it would wait for itself.
            return pass(&mut inner, parts, body).await;
        }
        let stage = if self.attached { Stage::Attached } else { Stage::Claimed };
        let patience = match self.policy.while_running {
            WhileRunning::Wait(patience) => patience,
            _ => Duration::ZERO,
        };
        let answer = match self.engine.admit(&work, key, claim, stage, patience).await {
            Admission::Run(run) => return self.handle(run, &work, &asked, inner, parts, body).await,
            Admission::Failed { running: None, .. } if self.fail_open => {
                self.engine.report(&Event::FailedOpen { key });
                return pass(&mut inner, parts, body).await;
            }
            // Not beside a run that is known to be going on.
            Admission::Failed { running: Some(left), .. } if self.fail_open => self.running(key, left),
            Admission::Failed { error, .. } if error.kind() == StoreErrorKind::Full => {
                self.refuse(Some(key), &Refusal::StoreFull)
            }
            Admission::Failed { .. } => self.refuse(Some(key), &Refusal::StoreUnavailable),
            Admission::Running(left) => self.running(key, left),
            Admission::Settled(payload) => self.duplicate(&asked, payload.as_ref()),
            Admission::Mismatch(mismatch) => self.refuse(Some(key), &Refusal::KeyReused(mismatch)),
            Admission::OutcomeUnknown => self.refuse(Some(key), &Refusal::OutcomeUnknown),
            Admission::NotIssued => self.refuse(Some(key), &Refusal::TokenInvalid),
        };
        if sends {
            Self::drain(body).await;
        }
        Ok(answer)
    }

    /// As much of the body as the claim needs, the claim, and whether the client may still be sending.
    async fn take<B>(
        &self,
        parts: &Parts,
        body: B,
        subject: Subject,
    ) -> Result<(RequestBody<B>, Result<Option<Asked>, Refusal>, bool), Refusal>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        if self.streams(&subject) {
            let sends = !Self::waits_for_a_word(&parts.headers);
            return Ok((RequestBody::passed(body), self.claim(parts, &Bytes::new(), subject), sends));
        }
        #[cfg(feature = "form")]
        if let Some(place) = self.looks_for(parts, &subject) {
            let (body, claimed) = self.claim_by_prefix(parts, body, subject, place).await;
            return Ok((body, claimed, true));
        }
        let whole = self.read(parts, body).await?;
        let claimed = self.claim(parts, &whole.data, subject);
        Ok((RequestBody::whole(whole), claimed, false))
    }

    /// The whole request body, or why not.
    async fn read<B>(&self, parts: &Parts, body: B) -> Result<Collected, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let limit = self.policy.request_limit;
        let mut body = pin!(body);
        match collect(body.as_mut(), limit).await {
            Ok(body) => Ok(body),
            Err(Failure::TooLong(Excess { read })) => {
                // A client whose body was read has had its word, and sends.
                if !read.is_empty() || !Self::waits_for_a_word(&parts.headers) {
                    Self::drain(body).await;
                }
                Err(Refusal::BodyTooLarge(Some(limit)))
            }
            Err(Failure::Broken(_, error)) => {
                if !is_over_a_limit(&*error.into()) {
                    return Err(Refusal::BodyIncomplete);
                }
                Self::drain(body).await;
                Err(Refusal::BodyTooLarge(None))
            }
        }
    }

    /// Runs the handler under its claim and ends the claim.
    async fn handle<S, B, R>(
        self: &Arc<Self>,
        mut run: Run<'_>,
        work: &Arc<Work>,
        asked: &Asked,
        mut inner: S,
        mut parts: Parts,
        body: RequestBody<B>,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        R: Body<Data = Bytes>,
    {
        let Asked { key, token, .. } = asked;
        let operation = Operation::new(work.clone(), key.clone(), run.started(), self.policy.retention);
        parts.extensions.insert(operation.remembered(self.memory(token.as_ref())));
        let issued = self.let_issue(&mut parts, token.as_ref());
        let request = Request::from_parts(parts, body);
        let handling = async {
            let mut response = inner.call(request).await?;
            if let Some(issued) = issued {
                issued.mark(response.headers_mut());
            }
            Ok(self.take_in(response, work, token.as_ref()).await)
        };
        let (answer, fate) = match run.hold(CatchUnwind::new(handling)).await {
            Ok(Ok(Handled { response, fate })) => (Ok(Ok(response)), fate),
            Ok(Err(error)) => (Ok(Err(error)), self.fate_of_failure()),
            // Without its client the work has lost its task-locals, which may be why it panicked.
            Err(panic) if work.is_leftover() && !self.policy.keeps_panics() => resume_unwind(panic),
            Err(panic) => (Err(panic), self.fate_of_failure()),
        };
        // What is known of a signed token must last as long as itself, whatever the policy or the handler says.
        let memory = self.memory(token.as_ref());
        let ending = match fate {
            Fate::Settle(payload, retention) => run.settle(payload, memory.unwrap_or(retention)).await,
            Fate::Release => run.release(memory.unwrap_or_else(|| self.policy.released_for())).await,
        };
        match (answer, ending) {
            (Err(panic), _) => resume_unwind(panic),
            (Ok(answer), Ending::Recorded | Ending::Unrecorded) => answer,
            (Ok(_), Ending::Lost(record)) => Ok(self.late(asked, record)),
            (Ok(_), Ending::RolledBack) => Ok(self.refuse(Some(key), &Refusal::RolledBack)),
            (Ok(_), Ending::Unknown) => Ok(self.refuse(Some(key), &Refusal::CommitUnknown)),
        }
    }

    /// What becomes of the record where the handler gave no answer.
    fn fate_of_failure(&self) -> Fate {
        // What a transaction has done is rolled back with its claim, whatever the policy keeps.
        if !self.policy.keeps_panics() || self.engine.transactions.is_some() {
            return Fate::Release;
        }
        let refusal = Refusal::HandlerFailed;
        // A renderer that panics in its turn must not cost the record.
        let rendered = catch_unwind(AssertUnwindSafe(|| self.rendered(&refusal)));
        let rendered = rendered.unwrap_or_else(|_| problem::render(&refusal, &self.problem_base));
        let (parts, data) = rendered.into_parts();
        let body = Collected { data, trailers: None };
        Fate::Settle(Some(codec::encode(parts.status, &parts.headers, &body, &self.headers)), self.policy.retention)
    }

    fn running<R: Body>(&self, key: &RecordKey, left: Duration) -> Response<ResponseBody<R>> {
        let refusal = Refusal::InProgress(left);
        match &self.policy.while_running {
            WhileRunning::Respond(reply) => self.respond(key, reply, Some(&refusal)),
            _ => self.refuse(Some(key), &refusal),
        }
    }

    fn duplicate<R: Body>(&self, asked: &Asked, payload: Option<&Bytes>) -> Response<ResponseBody<R>> {
        let Asked { key, token, .. } = asked;
        if let Some(failed) = self.replaced(payload, token.as_ref()) {
            return self.replay(key, failed);
        }
        match &self.policy.on_duplicate {
            OnDuplicate::Replay => match payload.and_then(codec::decode) {
                Some(kept) => self.replay(key, kept),
                None => self.refuse(Some(key), &Refusal::NotRetained),
            },
            OnDuplicate::Reject if self.tokens.is_some() => self.refuse(Some(key), &Refusal::TokenUsed),
            OnDuplicate::Reject => self.refuse(Some(key), &Refusal::Duplicate),
            OnDuplicate::Respond(reply) => self.respond(key, reply, None),
        }
    }

    /// The claim was lost by the time the handler ended: its client gets what the record says.
    fn late<R: Body>(&self, asked: &Asked, record: Option<Box<Record>>) -> Response<ResponseBody<R>> {
        let Asked { key, claim, .. } = asked;
        let same = |record: &Record| record.fingerprint == claim.fingerprint && record.caller == claim.caller;
        match record.filter(|record| same(record)) {
            Some(record) if record.state == State::Settled => self.duplicate(asked, record.payload.as_ref()),
            Some(record) => self.running(key, record.lease_left),
            None => self.running(key, Duration::ZERO),
        }
    }
}

/// Lets a request through unprotected.
async fn pass<S, B, R>(inner: &mut S, parts: Parts, body: RequestBody<B>) -> Result<Response<ResponseBody<R>>, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body,
{
    let request = Request::from_parts(parts, body);
    Ok(inner.call(request).await?.map(ResponseBody::passed))
}
