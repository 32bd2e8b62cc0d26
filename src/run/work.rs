use std::{future::Future, sync::Arc};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use super::RunError;
use crate::{
    engine::{Completion, Engine, Execution, ExecutionOutcome, Operation, Permanent, Work},
    value::{Event, OnDuplicate, Payload, Policy, Refusal, is_failure, json_of},
};

pub(super) async fn run<T, E, F>(
    engine: &Engine,
    work: &Arc<Work>,
    execution: Execution<'_>,
    permanent: &Permanent,
    function: impl FnOnce(Operation) -> F,
) -> Result<T, RunError<E>>
where
    T: Serialize + DeserializeOwned,
    E: 'static,
    F: Future<Output = Result<T, E>>,
{
    let (key, policy) = (execution.key, execution.policy);
    let job = |started| async move {
        let outcome = function(Operation::new(work.clone(), key.clone(), started, policy.retention)).await;
        let completion = completion(policy, work, permanent, &outcome);
        (outcome, completion)
    };
    let refusal = match engine.execute(work, execution, job).await {
        ExecutionOutcome::Ran(outcome) => return outcome.map_err(RunError::Failed),
        ExecutionOutcome::NoOutcome(why) => why.refusal(),
        // Whatever the policy is, a duplicate of a failure must not receive a success.
        ExecutionOutcome::Settled(payload) if is_failure(payload.as_ref()) => Refusal::HandlerFailed,
        ExecutionOutcome::Settled(payload) if matches!(policy.on_duplicate, OnDuplicate::Replay) => {
            match value(payload.as_ref()) {
                Ok(value) => {
                    engine.report(&Event::Replayed { key });
                    return Ok(value);
                }
                Err(refusal) => refusal,
            }
        }
        ExecutionOutcome::Settled(_) => Refusal::DuplicateRequest,
    };
    engine.report(&Event::Refused { key: Some(key), refusal: &refusal });
    Err(RunError::Refused(refusal))
}

fn completion<T: Serialize, E: 'static>(
    policy: &Policy,
    work: &Work,
    permanent: &Permanent,
    outcome: &Result<T, E>,
) -> Completion {
    let is_final = outcome.as_ref().map_or_else(|error| permanent.is(error), |_| true);
    if !policy.keeps_outcome(work.wishes(), is_final) {
        return Completion::Release(policy.released_for(None));
    }
    let Ok(value) = outcome else { return Completion::Fail };
    let payload = Payload::value(value).ok().and_then(Payload::into_bytes);
    let fits = |payload: &Bytes| json_of(payload).is_some_and(|json| json.len() <= policy.response_limit);
    Completion::Settle(payload.filter(fits))
}

/// Returns the kept value, or the refusal that its duplicate receives instead.
fn value<T: DeserializeOwned>(payload: Option<&Bytes>) -> Result<T, Refusal> {
    let json = payload.and_then(|payload| json_of(payload)).ok_or(Refusal::ResponseNotRetained)?;
    serde_json::from_slice(json).map_err(|_| Refusal::ResponseNotRetained)
}
