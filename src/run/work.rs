use std::{future::Future, sync::Arc};

use bytes::Bytes;
use serde::{Serialize, de::DeserializeOwned};

use super::RunError;
use crate::{
    engine::{Completion, Engine, NotRun, Operation, Outcome, Permanent, RunState, Standing, retention},
    value::{Event, NotKept, Payload, RecordKey, Refusal, RunSettings, is_failure, is_sealed, json_of},
};

/// The rules of a function.
pub(super) struct Rules {
    pub(super) policy: RunSettings,
    pub(super) permanent: Permanent,
    pub(super) reject_duplicates: bool,
    /// How long the JSON of a kept value may be.
    pub(super) value_limit: usize,
}

impl Rules {
    /// Runs a function that was claimed.
    pub(super) async fn run<T, E, F>(
        self: Arc<Self>,
        state: Arc<RunState>,
        function: impl FnOnce(Operation) -> F,
    ) -> (Result<T, E>, Completion)
    where
        T: Serialize,
        E: 'static,
        F: Future<Output = Result<T, E>>,
    {
        let outcome = function(Operation::new(state.clone(), self.policy.retention)).await;
        let completion = self.completion(&state, &outcome);
        (outcome, completion)
    }

    /// Returns what the caller receives.
    pub(super) fn value<T: DeserializeOwned, E>(
        &self,
        engine: &Engine,
        key: &RecordKey,
        outcome: Outcome<Result<T, E>>,
    ) -> Result<T, RunError<E>> {
        let refusal = match outcome {
            Outcome::Completed { value, recorded: true | false } => return value.map_err(RunError::Failed),
            Outcome::NotRun(NotRun::Settled(payload, _)) | Outcome::Overtaken(Standing::Settled(payload)) => {
                match self.kept(payload.as_ref()) {
                    Ok(value) => {
                        engine.report(&Event::Replayed { key, status: None, age: None, trace: None });
                        return Ok(value);
                    }
                    Err(refusal) => refusal,
                }
            }
            Outcome::Overtaken(Standing::Running(left)) => Refusal::RequestInProgress { left },
            Outcome::RolledBack { attempt: _ } => Refusal::RolledBack,
            Outcome::CommitUnknown => Refusal::CommitUnknown,
            Outcome::NotRun(why) => why.refusal(),
        };
        engine.report(&Event::Refused { route: key.route(), key: Some(key), refusal: &refusal });
        Err(RunError::Refused(refusal))
    }

    /// Returns the value for a duplicate, or why it receives none.
    fn kept<T: DeserializeOwned>(&self, payload: Option<&Bytes>) -> Result<T, Refusal> {
        // Whatever the policy is, a duplicate of a failure must not receive a success.
        if is_failure(payload) {
            return Err(Refusal::HandlerFailed);
        }
        if is_sealed(payload) {
            return Err(Refusal::AnswerUnreadable);
        }
        if self.reject_duplicates {
            return Err(Refusal::DuplicateRequest);
        }
        value(payload)
    }

    fn completion<T: Serialize, E: 'static>(&self, state: &RunState, outcome: &Result<T, E>) -> Completion {
        let is_final = outcome.as_ref().map_or_else(|error| self.permanent.is(error), |_| true);
        if !self.policy.keeps_outcome(state.directives(), is_final) {
            return Completion::Release(self.policy.retention);
        }
        let retention = retention(state, &self.policy);
        let Ok(value) = outcome else { return Completion::Fail(retention) };
        let payload = Payload::value(value).ok().and_then(Payload::into_bytes);
        let fits = |payload: &Bytes| json_of(payload).is_some_and(|json| json.len() <= self.value_limit);
        Completion::Settle(payload.filter(fits).ok_or(NotKept::NotSerializable), retention)
    }
}

/// Returns the kept value, or the refusal that its duplicate receives instead.
fn value<T: DeserializeOwned>(payload: Option<&Bytes>) -> Result<T, Refusal> {
    let json = payload.and_then(|payload| json_of(payload)).ok_or(Refusal::ResponseNotRetained)?;
    serde_json::from_slice(json).map_err(|_| Refusal::ResponseNotRetained)
}
