use std::{future::Future, sync::Arc};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use super::RunError;
use crate::{
    engine::{Completion, Engine, Execution, ExecutionOutcome, Operation, Permanent, Work},
    value::{Event, Payload, Refusal, RunSettings, is_failure, json_of},
};

/// What is a function's own: the rest is in the policy.
pub(super) struct Rules {
    pub(super) permanent: Permanent,
    pub(super) reject_duplicates: bool,
    /// How long the JSON of a kept value may be.
    pub(super) value_limit: usize,
}

pub(super) async fn run<T, E, F>(
    engine: &Engine,
    work: &Arc<Work>,
    execution: Execution<'_>,
    rules: &Rules,
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
        let completion = completion(policy, work, rules, &outcome);
        (outcome, completion)
    };
    let refusal = match engine.execute(work, execution, job).await {
        ExecutionOutcome::Ran(outcome) => return outcome.map_err(RunError::Failed),
        ExecutionOutcome::NoOutcome(why) => why.refusal(),
        // Whatever the policy is, a duplicate of a failure must not receive a success.
        ExecutionOutcome::Settled(payload) if is_failure(payload.as_ref()) => Refusal::HandlerFailed,
        ExecutionOutcome::Settled(_) if rules.reject_duplicates => Refusal::DuplicateRequest,
        ExecutionOutcome::Settled(payload) => match value(payload.as_ref()) {
            Ok(value) => {
                engine.report(&Event::Replayed { key });
                return Ok(value);
            }
            Err(refusal) => refusal,
        },
    };
    engine.report(&Event::Refused { key: Some(key), refusal: &refusal });
    Err(RunError::Refused(refusal))
}

fn completion<T: Serialize, E: 'static>(
    policy: &RunSettings,
    work: &Work,
    rules: &Rules,
    outcome: &Result<T, E>,
) -> Completion {
    let is_final = outcome.as_ref().map_or_else(|error| rules.permanent.is(error), |_| true);
    if !policy.keeps_outcome(work.wishes(), is_final) {
        return Completion::Release(policy.retention);
    }
    let Ok(value) = outcome else { return Completion::Fail };
    let payload = Payload::value(value).ok().and_then(Payload::into_bytes);
    let fits = |payload: &Bytes| json_of(payload).is_some_and(|json| json.len() <= rules.value_limit);
    Completion::Settle(payload.filter(fits))
}

/// Returns the kept value, or the refusal that its duplicate receives instead.
fn value<T: DeserializeOwned>(payload: Option<&Bytes>) -> Result<T, Refusal> {
    let json = payload.and_then(|payload| json_of(payload)).ok_or(Refusal::ResponseNotRetained)?;
    serde_json::from_slice(json).map_err(|_| Refusal::ResponseNotRetained)
}
