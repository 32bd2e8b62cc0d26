use std::borrow::Cow;

use bytes::Bytes;
use http::{Request, request::Parts};

use super::{Exchange, Scoping};
use crate::{
    extract::{caller, fingerprint, route},
    value::{Caller, Claim, Fingerprint, RecordKey, Refusal, hex},
};

/// What the head of a request says.
pub(crate) enum Begun<B> {
    /// The layer does not protect it.
    Pass(Request<B>),
    /// It is refused before its body is asked for.
    Refuse(Parts, B, Refusal),
    /// It has a key, or will have one once its body is there.
    Go(Parts, B, Subject),
}

/// Whose operation it is, and which, as far as the head says so.
pub(crate) struct Subject {
    caller: Caller,
    name: Name,
}

enum Name {
    Known(RecordKey),
    /// The body has the rest of it.
    Open {
        scope: ScopeOf,
        key: Option<String>,
    },
}

enum ScopeOf {
    /// It is told by the head, or there is none.
    Head(Option<String>),
    /// The body tells it.
    Body,
}

impl Exchange {
    /// Decides by the head alone. A request that is not protected is not taken apart.
    pub(crate) fn begin<B>(&self, request: Request<B>) -> Begun<B> {
        if !self.methods.contains(request.method()) {
            return Begun::Pass(request);
        }
        let (parts, body) = request.into_parts();
        match self.subject(&parts) {
            Ok(Some(subject)) => Begun::Go(parts, body, subject),
            Ok(None) => Begun::Pass(Request::from_parts(parts, body)),
            Err(refusal) => Begun::Refuse(parts, body, refusal),
        }
    }

    fn subject(&self, parts: &Parts) -> Result<Option<Subject>, Refusal> {
        let none = Bytes::new();
        let key_is_open = self.key.is_content() || self.key.needs_body();
        let key = if key_is_open { None } else { self.key.extract(parts, &none).map_err(Refusal::KeyInvalid)? };
        if key.is_none() && !key_is_open {
            return if self.key_required { Err(Refusal::KeyMissing) } else { Ok(None) };
        }
        let (scope, caller) = match &self.scoping {
            Scoping::Scope(scope) if scope.needs_body() => (ScopeOf::Body, Caller::NONE),
            Scoping::Scope(scope) => (ScopeOf::Head(scope.extract(parts, &none)?), Caller::NONE),
            Scoping::Credentials(credentials) => (ScopeOf::Head(None), caller(&parts.headers, credentials)),
            Scoping::Unscoped => (ScopeOf::Head(None), Caller::NONE),
        };
        let name = match (scope, key) {
            (ScopeOf::Head(scope), Some(key)) => Name::Known(self.record_key(parts, scope.as_deref(), &key)?),
            (scope, key) => Name::Open { scope, key: key.map(Cow::into_owned) },
        };
        Ok(Some(Subject { caller, name }))
    }

    /// The operation, and the claim for it, once the body is there. `None` where it has no key and needs none.
    pub(super) fn claim(
        &self,
        parts: &Parts,
        body: &Bytes,
        Subject { caller, name }: Subject,
    ) -> Result<Option<(RecordKey, Claim)>, Refusal> {
        let (key, fingerprint) = match name {
            Name::Known(key) => (key, self.fingerprint.of(parts, body)?),
            Name::Open { scope, .. } if self.key.is_content() => self.content(parts, body, scope, caller)?,
            Name::Open { scope, key } => {
                let key = match key {
                    Some(key) => Some(Cow::Owned(key)),
                    None => self.key.extract(parts, body).map_err(Refusal::KeyInvalid)?,
                };
                let Some(key) = key else {
                    return if self.key_required { Err(Refusal::KeyMissing) } else { Ok(None) };
                };
                let scope = self.scope(parts, body, scope)?;
                (self.record_key(parts, scope.as_deref(), &key)?, self.fingerprint.of(parts, body)?)
            }
        };
        let mut claim = Claim::new(self.policy.lease, self.policy.horizon());
        claim.fingerprint = fingerprint;
        claim.caller = caller;
        claim.at_most_once = self.policy.is_at_most_once();
        Ok(Some((key, claim)))
    }

    /// The content is the key. Where no scope is set, the caller takes its place.
    fn content(
        &self,
        parts: &Parts,
        body: &Bytes,
        scope: ScopeOf,
        caller: Caller,
    ) -> Result<(RecordKey, Fingerprint), Refusal> {
        let scope = match &self.scoping {
            Scoping::Credentials(_) => Some(hex(&caller.to_bytes())),
            _ => self.scope(parts, body, scope)?,
        };
        let fingerprint = self.fingerprint.of(parts, body)?;
        let content = match fingerprint {
            Fingerprint::OFF => fingerprint::of_bytes(parts, body),
            fingerprint => fingerprint,
        };
        Ok((self.record_key(parts, scope.as_deref(), &hex(content.digest()))?, fingerprint))
    }

    fn scope(&self, parts: &Parts, body: &Bytes, scope: ScopeOf) -> Result<Option<String>, Refusal> {
        match (scope, &self.scoping) {
            (ScopeOf::Body, Scoping::Scope(scope)) => scope.extract(parts, body),
            (ScopeOf::Head(scope), _) => Ok(scope),
            (ScopeOf::Body, _) => Ok(None),
        }
    }

    fn record_key(&self, parts: &Parts, scope: Option<&str>, key: &str) -> Result<RecordKey, Refusal> {
        let route = self.route.as_deref().map_or_else(|| route(parts), Cow::Borrowed);
        RecordKey::new(&route, scope, key).map_err(Refusal::KeyInvalid)
    }
}
