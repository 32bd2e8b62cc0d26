use std::{fmt, marker::PhantomData, sync::Arc, time::Duration};

#[cfg(feature = "json")]
use crate::extract::fingerprint_of_value;
use crate::{
    engine::{Engine, Operation, Permanent},
    value::{Claim, Fingerprint, KeyError, RecordKey, Refusal, Resolved, RunPolicy, is_blank},
};

pub(super) type OperationFn<M> = Arc<dyn Fn(&mut M, Operation) + Send + Sync>;
pub(super) type MessageFn<M, T> = Arc<dyn Fn(&M) -> T + Send + Sync>;

/// The settings of a layer, and its engine.
pub(super) struct Settings<M> {
    pub(super) engine: Arc<Engine>,
    pub(super) policy: Resolved<RunPolicy>,
    pub(super) retry_after: Duration,
    pub(super) attempts: Option<u32>,
    /// Whether the layer is switched off, so that nothing is protected.
    pub(super) disabled: bool,
    pub(super) name: Arc<str>,
    pub(super) key: MessageFn<M, Result<Option<String>, KeyError>>,
    pub(super) scope: Option<MessageFn<M, Option<String>>>,
    pub(super) fingerprint: MessageFn<M, Result<Fingerprint, Refusal>>,
    pub(super) permanent: Permanent,
    pub(super) operation: Option<OperationFn<M>>,
}

impl<M> Settings<M> {
    /// Returns the operation that a message is, and the claim for it.
    pub(super) fn claim(&self, message: &M) -> Result<(RecordKey, Claim), Refusal> {
        let key = (self.key)(message).map_err(Refusal::key_invalid)?.ok_or(Refusal::KeyMissing)?;
        let scope = match &self.scope {
            Some(scope) => Some(scope(message).filter(|scope| !is_blank(scope)).ok_or(Refusal::ScopeMissing)?),
            None => None,
        };
        let key = RecordKey::new(&self.name, scope.as_deref(), &key).map_err(Refusal::key_invalid)?;
        let mut claim = Claim::new(self.policy.lease, self.policy.horizon());
        claim.at_most_once = self.policy.is_at_most_once();
        if !self.policy.any_content {
            claim.fingerprint = (self.fingerprint)(message)?;
        }
        if let Some(secret) = &self.engine.secret {
            claim = claim.sealed_with(secret);
        }
        Ok((key, claim))
    }
}

#[cfg(feature = "json")]
pub(super) fn in_json<M: serde::Serialize>(message: &M) -> Result<Fingerprint, Refusal> {
    let written = fingerprint_of_value(message);
    written.map_err(|error| Refusal::BodyInvalid {
        detail: format!("The message cannot be written as JSON: {error}.").into(),
    })
}

// Not derived, since `M` need not be `Clone`.
impl<M> Clone for Settings<M> {
    fn clone(&self) -> Self {
        Self {
            engine: self.engine.clone(),
            policy: self.policy.clone(),
            retry_after: self.retry_after,
            attempts: self.attempts,
            disabled: self.disabled,
            name: self.name.clone(),
            key: self.key.clone(),
            scope: self.scope.clone(),
            fingerprint: self.fingerprint.clone(),
            permanent: self.permanent.clone(),
            operation: self.operation.clone(),
        }
    }
}

impl<M> fmt::Debug for Settings<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("engine", &self.engine)
            .field("policy", &self.policy)
            .field("name", &self.name)
            .field("attempts", &self.attempts)
            .field("permanent", &self.permanent)
            .field("retry_after", &self.retry_after)
            .field("disabled", &self.disabled)
            .field("message", &PhantomData::<M>)
            .finish_non_exhaustive()
    }
}
