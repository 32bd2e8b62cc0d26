use std::{future::Future, sync::Arc};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use super::RunError;
use crate::{
    engine::{Engine, Errand, Fate, Performed, Work},
    exchange::Operation,
    value::{Claim, Event, OnDuplicate, Payload, Policy, RecordKey, Refusal, is_failure, json_of},
};

pub(super) async fn run<T, E, F>(
    engine: &Engine,
    work: &Arc<Work>,
    policy: &Policy,
    attached: bool,
    key: &RecordKey,
    claim: &Claim,
    function: impl FnOnce(Operation) -> F,
) -> Result<T, RunError<E>>
where
    T: Serialize + DeserializeOwned,
    F: Future<Output = Result<T, E>>,
{
    let errand = Errand { key, claim, policy, attached };
    let job = |started| async move {
        let outcome = function(Operation::new(work.clone(), key.clone(), started, policy.retention)).await;
        let fate = fate(policy, work, &outcome);
        (outcome, fate)
    };
    let refusal = match engine.perform(work, errand, job).await {
        Performed::Ran(outcome) => return outcome.map_err(RunError::Failed),
        Performed::Refused(refusal) => refusal,
        Performed::Settled(payload) => match (&policy.on_duplicate, value(payload.as_ref())) {
            (OnDuplicate::Replay, Ok(value)) => {
                engine.report(&Event::Replayed { key });
                return Ok(value);
            }
            (OnDuplicate::Replay, Err(refusal)) => refusal,
            _ => Refusal::DuplicateRequest,
        },
    };
    engine.report(&Event::Refused { key: Some(key), refusal: &refusal });
    Err(RunError::Refused(refusal))
}

fn fate<T: Serialize, E>(policy: &Policy, work: &Work, outcome: &Result<T, E>) -> Fate {
    let wishes = work.wishes();
    let release = Fate::Release(policy.released_for(None));
    let Ok(value) = outcome else {
        let kept = policy.keeps_outcome(wishes, false, b"");
        return if kept { Fate::Settle(Payload::failed().into_bytes()) } else { release };
    };
    let payload = Payload::value(value).ok().and_then(Payload::into_bytes);
    let json = payload.as_deref().and_then(json_of);
    if !policy.keeps_outcome(wishes, true, json.unwrap_or_default()) {
        return release;
    }
    let fits = json.is_some_and(|json| json.len() <= policy.response_limit);
    Fate::Settle(payload.filter(|_| fits))
}

/// The kept value, or what its duplicate hears instead.
fn value<T: DeserializeOwned>(payload: Option<&Bytes>) -> Result<T, Refusal> {
    if is_failure(payload) {
        return Err(Refusal::HandlerFailed);
    }
    let json = payload.and_then(|payload| json_of(payload)).ok_or(Refusal::ResponseNotRetained)?;
    serde_json::from_slice(json).map_err(|_| Refusal::ResponseNotRetained)
}
