//! Step 5 of a request: the operation by its name, and the claim for it.
//!
//! Everything that the claim needs is there: the head, and as much of the body as the key, the scope or the fingerprint
//! depend on. Nothing is claimed yet, so a refusal leaves nothing behind.

use std::{borrow::Cow, mem, time::Duration};

use bytes::Bytes;
use http::request::Parts;

use super::{
    Exchange, Scoping,
    identify::{IdentityState, PartialIdentity, ScopeSource},
    respond::Advice,
};
use crate::{
    engine::{ClaimRequest, Party, RunState},
    extract::{Seen, fingerprint},
    token::PresentedToken,
    value::{Caller, Claim, Fingerprint, RecordKey, Refusal, hex},
};

/// An operation that a request asks for, and the claim for it.
pub(crate) struct KeyedRequest {
    pub(super) claim: ClaimRequest,
    /// The token that names the operation, if one does.
    pub(super) token: Option<Box<PresentedToken>>,
    /// The layer lets the request through in any case.
    pub(super) only_observed: bool,
}

/// A request, as its answers and refusals depend on it.
#[derive(Clone, Copy)]
pub(crate) struct RequestContext<'a> {
    pub(super) key: &'a RecordKey,
    pub(super) claim: &'a Claim,
    pub(super) token: Option<&'a PresentedToken>,
    /// The request's head, if it is still there: the handler has had it, and a copy exists only if something looks back
    /// at it.
    pub(super) head: Option<&'a Parts>,
}

impl<'a> RequestContext<'a> {
    /// Returns the context of a request that runs.
    pub(super) fn of_run(state: &'a RunState, token: Option<&'a PresentedToken>, head: Option<&'a Parts>) -> Self {
        Self { key: &state.key, claim: &state.claim, token, head }
    }
}

impl KeyedRequest {
    pub(super) fn context<'a>(&'a self, head: &'a Parts) -> RequestContext<'a> {
        let ClaimRequest { key, claim, .. } = &self.claim;
        RequestContext { key, claim, token: self.token.as_deref(), head: Some(head) }
    }
}

impl Exchange {
    /// The operation, and the claim for it, once the body is there. `None` if it has no key and needs none.
    ///
    /// `held` is how many bytes of the body are kept in memory while the request waits.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the key, the scope or the fingerprint cannot be taken from the body.
    pub(super) fn claim(
        &self,
        parts: &Parts,
        body: &Bytes,
        subject: &mut PartialIdentity,
        held: usize,
    ) -> Result<Option<KeyedRequest>, Refusal> {
        let PartialIdentity { mut caller, seen, only_observed, .. } = *subject;
        let ((key, token), fingerprint) = match mem::take(&mut subject.name) {
            IdentityState::Known(named) => (named, self.fingerprint_of(parts, body)?),
            IdentityState::NeedsBody { scope, key } => {
                let key = match (key, self.key_of_body()) {
                    (None, Some(of_body)) => of_body.extract(parts, body).map_err(|error| self.invalid(error))?,
                    (key, _) => key.map(Cow::Owned),
                };
                if key.is_none() && !self.is_content() {
                    return self.missing();
                }
                let scope = match (scope, &self.scoping) {
                    (ScopeSource::Body, Scoping::Scope(scope)) => {
                        let scope = scope.extract(parts, body)?;
                        if scope.is_none() {
                            caller = self.caller(parts).0;
                        }
                        scope
                    }
                    (ScopeSource::Head(scope), _) => scope,
                    _ => None,
                };
                let fingerprint = self.fingerprint_of(parts, body)?;
                let key = key.unwrap_or_else(|| Cow::Owned(content(parts, body, fingerprint, caller)));
                (self.named(parts, scope.as_deref(), &key)?, fingerprint)
            }
        };
        if self.scoping.is_unsaid() {
            self.advise(parts, &key, caller, seen);
        }
        let memory = self.memory(token.as_deref()).unwrap_or_default();
        let mut claim = Claim::new(self.policy.run.lease, self.policy.run.horizon().max(memory));
        claim.fingerprint = fingerprint;
        claim.caller = caller;
        claim.issued = token.as_ref().filter(|token| token.signed.is_none()).map(|token| token.binding.stored());
        claim.at_most_once = self.policy.run.is_at_most_once();
        claim.trace = self.trace_context.as_ref().and_then(|trace_context| trace_context(parts));
        if self.keep_request {
            claim.note = body.clone();
        }
        if let Some(secret) = &self.engine.secret {
            claim = claim.sealed_with(secret);
        }
        let claim = ClaimRequest {
            party: self.party(&key, caller, token.as_deref()),
            key,
            claim,
            // What is let through in any case does not wait before.
            wait: if only_observed { Duration::ZERO } else { self.policy.run.wait },
            body: held,
        };
        Ok(Some(KeyedRequest { claim, token, only_observed }))
    }

    /// Returns the fingerprint of the request. In a window by a field the key alone decides.
    fn fingerprint_of(&self, parts: &Parts, body: &Bytes) -> Result<Fingerprint, Refusal> {
        if self.policy.run.any_content && !self.is_content() {
            return Ok(Fingerprint::OFF);
        }
        self.fingerprint.of(parts, body)
    }

    /// Warns of callers that cannot be distinguished.
    fn advise(&self, parts: &Parts, key: &RecordKey, caller: Caller, seen: Seen) {
        if caller == Caller::NONE {
            let advice = if seen.has_gateway_token() { Advice::GatewayToken } else { Advice::NoCredential };
            self.warned.warn(advice, key.route());
        } else if seen.leaves_out_a_cookie(&parts.headers) {
            self.warned.warn(Advice::CookieLeftOut, key.route());
        }
    }

    /// Returns the party whose bounds the request counts against.
    ///
    /// The order is that of what identifies a caller best: scope, principal of a token, credentials, and otherwise the
    /// layer.
    fn party(&self, key: &RecordKey, caller: Caller, token: Option<&PresentedToken>) -> Party {
        if key.scope().is_some() {
            return Party::Scope;
        }
        match token.and_then(|token| token.binding.principal.clone()) {
            Some(principal) => Party::Principal(principal),
            None if caller != Caller::NONE => Party::Caller(caller),
            None => Party::Layer(std::ptr::from_ref(self).addr()),
        }
    }
}

/// The content as a key. If no scope says whose it is, the caller does.
fn content(parts: &Parts, body: &Bytes, fingerprint: Fingerprint, caller: Caller) -> String {
    let content = match fingerprint {
        Fingerprint::OFF => fingerprint::of_bytes(parts, body, &[]),
        fingerprint => fingerprint,
    };
    match caller {
        Caller::NONE => hex(content.digest()),
        caller => format!("{}.{}", hex(content.digest()), hex(&caller.to_bytes())),
    }
}
