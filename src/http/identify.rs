//! Step 2 of a request: who asks for which operation, as far as the head says so.
//!
//! A body is read only if it is needed. `subject` looks at the head and returns what it has: a complete name
//! (`IdentityState::Known`), or the parts that are missing (`IdentityState::NeedsBody`: the key, the scope, or both are
//! in the body or in an extractor). `name` completes it once the body is there.
//!
//! The scope comes first, then the key, then the caller: credentials are digested only if no scope says whose key it
//! is.
//!
//! | where the parts are | what `subject` returns | the body is read |
//! | --- | --- | --- |
//! | key and scope in the head | a known name | for the fingerprint, unless `stream_body` |
//! | key in the body | open, with the scope | for the key |
//! | scope in the body | open, with the key if the head has it | for the scope |
//! | scope by an extractor | open; `authenticate` completes it | as above, afterwards |
//! | token in a header | a known name | only if a duplicate gets more than a refusal |
//! | token in a form | open | up to the token, or whole |
//! | no key, and none is required | nothing: the request passes | – |

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use http::{Method, request::Parts};

use super::{Exchange, RouteSource, Scoping};
use crate::{
    extract::{Credentials, Seen, full_uri, key::KeyExtractor, route},
    token::PresentedToken,
    value::{Caller, Event, KeyError, OnDuplicate, Protection, RecordKey, Refusal},
};

/// Whose operation it is, and which, as far as the head says so.
pub(crate) struct PartialIdentity {
    pub(super) caller: Caller,
    /// Which credentials the head has, for the warnings about callers that cannot be distinguished.
    pub(super) seen: Seen,
    pub(super) name: IdentityState,
    /// The layer lets the request through in any case.
    pub(super) only_observed: bool,
}

/// The key of the operation, and the token if the layer requires one.
pub(super) type NamedOperation = (RecordKey, Option<Box<PresentedToken>>);

/// The name of the operation, as far as it is known before the body.
pub(super) enum IdentityState {
    /// The head has all of it.
    Known(NamedOperation),
    /// The body has the rest of it.
    NeedsBody { scope: ScopeSource, key: Option<String> },
}

/// A name of which nothing is known.
impl Default for IdentityState {
    fn default() -> Self {
        Self::NeedsBody { scope: ScopeSource::Head(None), key: None }
    }
}

/// The source of the scope.
pub(super) enum ScopeSource {
    /// The head has it, or the layer has no scope.
    Head(Option<String>),
    /// The body has it.
    Body,
    /// An extractor that has not run yet returns it.
    Extractor,
}

#[cfg(feature = "axum")]
impl PartialIdentity {
    /// Returns whether an extractor has to run before the scope is known.
    pub(super) fn awaits_extractor(&self) -> bool {
        matches!(self.name, IdentityState::NeedsBody { scope: ScopeSource::Extractor, .. })
    }
}

#[cfg(feature = "form")]
impl PartialIdentity {
    /// Returns whether only the token is missing, so that a prefix of the body suffices.
    pub(super) fn lacks_only_its_key(&self) -> bool {
        matches!(self.name, IdentityState::NeedsBody { scope: ScopeSource::Head(_), key: None })
    }

    /// Completes the name with a token that was found in the body.
    pub(super) fn with_key(mut self, found: String) -> Self {
        if let IdentityState::NeedsBody { key, .. } = &mut self.name {
            *key = Some(found);
        }
        self
    }
}

impl Exchange {
    /// Returns whether requests of this method are protected if they have a key, or at least verified.
    pub(crate) fn is_protected(&self, method: &Method) -> bool {
        self.methods.contains(method) && !(self.disabled && self.verify.is_none())
    }

    /// Returns whether the layer protects its requests now. A route that is not protected is named in the log.
    pub(super) fn protection(&self, parts: &Parts) -> Protection {
        let protection = self.engine.protection();
        if protection != Protection::On {
            self.engine.name_unprotected(&self.route_of(parts), protection);
        }
        if self.disabled { Protection::Off } else { protection }
    }

    /// Reports a request that has no key and needs none.
    pub(super) fn report_keyless(&self, parts: &Parts) {
        if !self.engine.observers.is_empty() || is_traced() {
            self.engine.report(&Event::Keyless { route: &self.route_of(parts) });
        }
    }

    /// Reports a request without a valid key that is let through, since the layer only observes.
    pub(super) fn report_would_refuse(&self, parts: &Parts, refusal: &Refusal) {
        self.engine.report(&Event::WouldRefuse { route: &self.route_of(parts), key: None, refusal });
    }

    /// Returns the route of a request; for a token that is its purpose.
    pub(super) fn route_of<'a>(&'a self, parts: &'a Parts) -> Cow<'a, str> {
        match (&self.route, self.fixed_route()) {
            (_, Some(name)) => Cow::Borrowed(name),
            (RouteSource::Path, _) => Cow::Borrowed(full_uri(parts).path()),
            (RouteSource::Matched | RouteSource::Fixed(_), None) => route(parts),
        }
    }

    /// Returns the route, if it is the same for all requests.
    pub(super) fn fixed_route(&self) -> Option<&str> {
        match (&self.tokens, &self.route) {
            (Some(rule), _) => Some(&rule.purpose),
            (None, RouteSource::Fixed(name)) => Some(name),
            (None, RouteSource::Matched | RouteSource::Path) => None,
        }
    }

    /// Returns what the head of a request says: it has a key, or will have one once its body is there; or the layer
    /// does not protect it; or it is refused before its body is asked for.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the key or the scope is missing or malformed, as far as the head shows it. `Ok(None)` means
    /// that the layer does not protect the request.
    pub(crate) fn subject(&self, parts: &Parts) -> Result<Option<PartialIdentity>, Refusal> {
        let none = Bytes::new();
        let of_head = !self.key.needs_body();
        let key = if of_head { self.key.extract(parts, &none).map_err(|error| self.invalid(error))? } else { None };
        let of_body = self.key_of_body();
        if key.is_none() && of_body.is_none() {
            return self.missing();
        }
        let scope = match &self.scoping {
            Scoping::Scope(scope) if scope.needs_body() => ScopeSource::Body,
            Scoping::Scope(scope) if scope.needs_extractor() => ScopeSource::Extractor,
            Scoping::Scope(scope) => ScopeSource::Head(scope.extract(parts, &none)?),
            _ => ScopeSource::Head(None),
        };
        let (caller, seen) = match &scope {
            ScopeSource::Head(None) => self.caller(parts),
            _ => (Caller::NONE, Seen::default()),
        };
        let name = match (scope, key) {
            (ScopeSource::Head(scope), Some(key)) => IdentityState::Known(self.named(parts, scope.as_deref(), &key)?),
            (scope, key) => IdentityState::NeedsBody { scope, key: key.map(Cow::into_owned) },
        };
        Ok(Some(PartialIdentity { caller, seen, name, only_observed: false }))
    }

    /// Returns who asks, if no scope says so. Tokens are bound to a principal instead.
    pub(super) fn caller(&self, parts: &Parts) -> (Caller, Seen) {
        match &self.scoping {
            Scoping::Credentials(credentials) => credentials.caller(&parts.headers),
            Scoping::Scope(_) if self.tokens.is_none() => Credentials::Usual.caller(&parts.headers),
            _ => (Caller::NONE, Seen::default()),
        }
    }

    /// The subject, once an extractor has said whose it is.
    #[cfg(feature = "axum")]
    pub(super) fn scoped(
        &self,
        parts: &Parts,
        subject: PartialIdentity,
        scope: Option<String>,
    ) -> Result<PartialIdentity, Refusal> {
        let PartialIdentity { mut caller, seen, name, only_observed } = subject;
        if scope.is_none() {
            caller = self.caller(parts).0;
        }
        let name = match name {
            IdentityState::NeedsBody { key: Some(key), .. } => {
                IdentityState::Known(self.named(parts, scope.as_deref(), &key)?)
            }
            IdentityState::NeedsBody { key: None, .. } => {
                IdentityState::NeedsBody { scope: ScopeSource::Head(scope), key: None }
            }
            known => known,
        };
        Ok(PartialIdentity { caller, seen, name, only_observed })
    }

    /// Returns the place in the body in which the key may be.
    pub(super) fn key_of_body(&self) -> Option<&KeyExtractor> {
        match &self.tokens {
            Some(rule) => Some(&rule.field),
            None => Some(&self.key).filter(|key| key.ends_in_content() || key.needs_body()),
        }
    }

    /// Returns whether the content of the request is its key.
    pub(super) fn is_content(&self) -> bool {
        self.tokens.is_none() && self.key.ends_in_content()
    }

    /// Returns the key of the operation, and the token that names it.
    ///
    /// For a token the name of the record is a digest of the token, so that a reader of the store cannot spend it.
    pub(super) fn named(&self, parts: &Parts, scope: Option<&str>, key: &str) -> Result<NamedOperation, Refusal> {
        if let Some(rule) = &self.tokens {
            return rule.look_at(key, scope).map(|(key, shown)| (key, Some(Box::new(shown))));
        }
        let route = self.route_of(parts);
        let named = if self.key.may_be_quoted() { RecordKey::of_quoted } else { RecordKey::new };
        Ok((named(&route, scope, key).map_err(Refusal::key_invalid)?, None))
    }

    /// Returns how long it has to be remembered what became of an operation, if that is not for the policy to say.
    pub(super) fn memory(&self, token: Option<&PresentedToken>) -> Option<Duration> {
        self.tokens.as_ref()?.issuer.memory(token?)
    }

    /// Returns the refusal of a malformed key, or of a malformed token.
    pub(super) fn invalid(&self, error: KeyError) -> Refusal {
        if self.tokens.is_some() { Refusal::TokenInvalid } else { Refusal::KeyInvalid { error } }
    }

    /// Returns the outcome for a request without a key: a refusal, or no protection.
    pub(super) fn missing<T>(&self) -> Result<Option<T>, Refusal> {
        match (&self.tokens, self.key_optional) {
            (Some(_), _) => Err(Refusal::TokenMissing),
            (None, false) => Err(Refusal::KeyMissing),
            (None, true) => Ok(None),
        }
    }

    /// Returns whether the body goes to the handler as it comes: the key is in the head, and nothing asks what the body
    /// says.
    pub(super) fn streams(&self, subject: &PartialIdentity) -> bool {
        let of_token = || self.tokens.is_some() && self.asks_for_no_body();
        matches!(subject.name, IdentityState::Known(..)) && (self.stream_body || of_token())
    }

    /// Returns whether only the handler reads the body of a request with a token, since duplicates are refused.
    pub(super) fn asks_for_no_body(&self) -> bool {
        matches!(self.policy.on_duplicate, OnDuplicate::Reject) && self.verify.is_none() && !self.keep_request
    }
}

/// Returns whether somebody may read what is traced, so that most requests need not name their route for it.
fn is_traced() -> bool {
    #[cfg(feature = "tracing")]
    return tracing::enabled!(tracing::Level::TRACE);
    #[cfg(not(feature = "tracing"))]
    return false;
}
