//! Steps 7, 9 and 10 of a request that was granted: run the handler, end the claim, respond.
//!
//! The order is fixed: the handler's future is dropped before the claim is ended, the claim is ended before the
//! response is returned, and a panic of the handler is resumed after the claim has ended. In the background a panic is
//! not followed by a release: without its client the work has lost its task-locals, which may be why it panicked, so
//! the claim is left to its lease.
//!
//! | how the handler ended | fate of the record | the client receives |
//! | --- | --- | --- |
//! | an answer that the policy keeps | settled | the answer |
//! | an answer that it does not keep | released | the answer |
//! | 401, 407 or 429, and nothing began | undone | the answer |
//! | a panic or an error | released; settled if failures are kept | the panic or the error |
//! | the request broke while it was read | released | the answer |
//! | the claim was lost meanwhile | the other claim's | what the record says |

use std::{any::Any, future::Future, panic::resume_unwind, pin::pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use tower_service::Service;

use super::{
    ClaimRequest, Exchange,
    answer::{Asking, RecordAction},
    run::whole_request,
};
use crate::{
    body::{RequestBody, ResponseBody},
    engine::{CatchUnwind, EndRequest, FinishOutcome, Operation, Run, Work},
    token::PresentedToken,
    value::Refusal,
};

/// What came of what may have panicked.
type Caught<T> = Result<T, Box<dyn Any + Send>>;

impl Exchange {
    /// Runs the handler under its claim and ends the claim.
    ///
    /// # Panics
    ///
    /// Panics if the handler panics, after the claim has been ended.
    #[expect(clippy::manual_async_fn, reason = "an `async fn` has room for its arguments twice")]
    pub(super) fn handle<S, B, R>(
        self: &Arc<Self>,
        mut run: Run<'_>,
        work: &Arc<Work>,
        asked: &ClaimRequest,
        inner: &mut S,
        parts: &mut Parts,
        body: RequestBody<B>,
    ) -> impl Future<Output = Result<Response<ResponseBody<R>>, S::Error>>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        R: Body<Data = Bytes>,
    {
        async move {
            let ClaimRequest { key, token, .. } = asked;
            let head = self.looks_back().then(|| Box::new(parts.clone()));
            let asking = Asking { asked, head: head.as_deref() };
            let operation = Operation::new(work.clone(), key.clone(), run.started(), self.policy.run.retention);
            parts.extensions.insert(operation.remembered(self.memory(token.as_deref())));
            let issued = self.insert_issuer(parts, token.as_deref());
            let handling = async {
                let request = whole_request(parts, body);
                let (mut head, body) = inner.call(request).await?.into_parts();
                if let Some(issued) = issued {
                    issued.mark(&mut head.headers);
                }
                let (body, action) = self.collect_response(asking, &mut head, body, work).await;
                if !body.is_broken() {
                    self.check_answer(key, &head, &action, work);
                }
                Ok((Response::from_parts(head, body), action))
            };
            // Gone by the time the run is ended.
            let handled = { run.hold(pin!(CatchUnwind::new(handling))).await };
            let (mut answer, action) = self.split_outcome(handled, work, asking);
            let action = self.unless_broken(action, work);
            let of_record = self.of_record(&action);
            let how = self.end_request(&run, action, token.as_deref());
            let ending = run.finish(how).await;
            // The handler has had the head: what is left looks like none.
            let head = head.as_deref().unwrap_or(parts);
            if let (Ok(Ok(answer)), FinishOutcome::Recorded) = (&mut answer, &ending) {
                self.tell(answer, of_record);
            }
            match (answer, ending) {
                (Err(panic), _) => resume_unwind(panic),
                (Ok(answer), FinishOutcome::Recorded | FinishOutcome::Unrecorded) => answer,
                (Ok(_), FinishOutcome::Lost(record)) => Ok(self.late(head, asked, record)),
                (Ok(_), FinishOutcome::RolledBack) => Ok(self.refuse(head, Some(key), &Refusal::RolledBack)),
                (Ok(_), FinishOutcome::Unknown) => Ok(self.refuse(head, Some(key), &Refusal::CommitUnknown)),
            }
        }
    }

    /// What the client gets, unless the store knows better, and what becomes of the record.
    fn split_outcome<T, E>(
        &self,
        handled: Caught<Result<(T, RecordAction), E>>,
        work: &Work,
        asking: Asking<'_>,
    ) -> (Caught<Result<T, E>>, RecordAction) {
        match handled {
            Ok(Ok((response, action))) => (Ok(Ok(response)), action),
            Ok(Err(error)) => (Ok(Err(error)), self.action_of_failure(asking)),
            // Without its client the work has lost its task-locals, which may be why it panicked.
            Err(panic) if work.is_detached() && !self.policy.run.keeps_panics() => resume_unwind(panic),
            Err(panic) => (Err(panic), self.action_of_failure(asking)),
        }
    }

    /// Converts the fate of a record to the end of its run.
    fn end_request(&self, run: &Run<'_>, action: RecordAction, token: Option<&PresentedToken>) -> EndRequest {
        match action {
            RecordAction::Settle(payload, retention) => run.settlement(payload, retention),
            RecordAction::Replace(payload, retention, _) => run.settlement(Some(payload), retention),
            RecordAction::Release(answer) => run.release(self.kept_for(self.policy.released_for(answer), token)),
            RecordAction::Undo => run.undo(self.kept_for(self.policy.run.retention, token)),
        }
    }

    /// A request that broke while the handler read it has failed, unless failures are kept or the handler wants its
    /// answer kept.
    ///
    /// Otherwise a handler that ignores the error of its body would have a success recorded for half a request.
    fn unless_broken(&self, action: RecordAction, work: &Work) -> RecordAction {
        let fails = work.is_request_broken() && !self.keeps_failures() && work.wishes().retain.is_none();
        if fails { RecordAction::Release(None) } else { action }
    }

    /// Whether a run is recorded that failed without an answer. What a transaction has done is rolled back with its
    /// claim, whatever the policy keeps.
    fn keeps_failures(&self) -> bool {
        self.policy.run.keeps_panics() && self.engine.transactions.is_none()
    }

    /// What becomes of the record if the handler gave no answer.
    fn action_of_failure(&self, Asking { asked, head }: Asking<'_>) -> RecordAction {
        if !self.keeps_failures() {
            return RecordAction::Release(None);
        }
        let retention = self.kept_for(self.policy.run.retention, asked.token.as_deref());
        RecordAction::Settle(Some(self.kept_refusal(head, asked, &Refusal::HandlerFailed, retention)), retention)
    }
}
