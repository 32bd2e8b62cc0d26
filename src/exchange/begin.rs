use std::borrow::Cow;

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
    scope: Option<String>,
    caller: Caller,
    key: Option<RecordKey>,
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
        let key = self.key.extract(parts).map_err(Refusal::KeyInvalid)?;
        if key.is_none() && !self.key.is_content() {
            return if self.key_required { Err(Refusal::KeyMissing) } else { Ok(None) };
        }
        let (scope, caller) = match &self.scoping {
            Scoping::Scope(scope) => (scope.extract(parts).map_err(|()| Refusal::ScopeMissing)?, Caller::NONE),
            Scoping::Credentials(credentials) => (None, caller(&parts.headers, credentials)),
            Scoping::Unscoped => (None, Caller::NONE),
        };
        let key = key.map(|key| self.record_key(parts, scope.as_deref(), &key)).transpose()?;
        Ok(Some(Subject { scope, caller, key }))
    }

    /// The operation, and the claim for it, once the body is there.
    pub(super) fn claim(
        &self,
        parts: &Parts,
        body: &bytes::Bytes,
        subject: Subject,
    ) -> Result<(RecordKey, Claim), Refusal> {
        let fingerprint = self.fingerprint.of(parts, body);
        let key = match subject.key {
            Some(key) => key,
            None => self.content_key(parts, body, &subject, fingerprint)?,
        };
        let mut claim = Claim::new(self.policy.lease, self.policy.horizon());
        claim.fingerprint = fingerprint;
        claim.caller = subject.caller;
        claim.at_most_once = self.policy.is_at_most_once();
        Ok((key, claim))
    }

    /// The content is the key; where no scope is set, the caller takes its place.
    fn content_key(
        &self,
        parts: &Parts,
        body: &bytes::Bytes,
        subject: &Subject,
        fingerprint: Fingerprint,
    ) -> Result<RecordKey, Refusal> {
        let content = match fingerprint {
            Fingerprint::OFF => fingerprint::of_bytes(parts, body),
            fingerprint => fingerprint,
        };
        let caller = matches!(self.scoping, Scoping::Credentials(_)).then(|| hex(&subject.caller.to_bytes()));
        let scope = subject.scope.as_deref().or(caller.as_deref());
        self.record_key(parts, scope, &hex(content.digest()))
    }

    fn record_key(&self, parts: &Parts, scope: Option<&str>, key: &str) -> Result<RecordKey, Refusal> {
        let route = self.route.as_deref().map_or_else(|| route(parts), Cow::Borrowed);
        RecordKey::new(&route, scope, key).map_err(Refusal::KeyInvalid)
    }
}
