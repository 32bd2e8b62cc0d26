use std::{borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, request::Parts};

#[cfg(feature = "axum")]
use crate::extract::by_extractor::{ByExtractor, Extracting};
use crate::{
    extract::{cookies, credential, key::KeyExtractor, route::host},
    value::{Refusal, is_blank, labelled_digest},
};

/// An extractor of a request's scope. Created by the functions of this module.
#[derive(Clone)]
#[must_use = "a scope extractor does nothing until a layer has it"]
pub struct ScopeExtractor {
    source: Source,
    optional: bool,
}

#[derive(Clone)]
pub(super) enum Source {
    Closure(Arc<ScopeFn>),
    Body(Arc<ScopeOfBodyFn>),
    Header(HeaderName),
    Cookie(Arc<str>),
    Host,
    /// With the name of the type that is looked for; `None` if it is not there.
    Extension(Arc<ExtensionFn>, &'static str),
    Key(KeyExtractor),
    #[cfg(feature = "axum")]
    Extractor(Arc<ByExtractor>),
}

type ScopeFn = dyn Fn(&Parts) -> Option<String> + Send + Sync;
type ScopeOfBodyFn = dyn Fn(&Parts, &Bytes) -> Option<String> + Send + Sync;
type ExtensionFn = dyn Fn(&Parts) -> Option<String> + Send + Sync;

impl ScopeExtractor {
    pub(super) fn of(source: Source) -> Self {
        Self { source, optional: false }
    }

    /// Allows the scope to be missing. Requests without one are distinguished by their
    /// [credentials](crate::credential), as on a layer without a scope.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Returns whether the body has to be read first.
    pub(crate) fn needs_body(&self) -> bool {
        match &self.source {
            Source::Body(_) => true,
            Source::Key(key) => key.needs_body(),
            _ => false,
        }
    }

    /// Returns whether an extractor has to run first.
    #[cfg_attr(not(feature = "axum"), allow(clippy::unused_self))]
    pub(crate) fn needs_extractor(&self) -> bool {
        #[cfg(feature = "axum")]
        return matches!(self.source, Source::Extractor(_));
        #[cfg(not(feature = "axum"))]
        false
    }

    /// Runs the extractor, if there is one.
    #[cfg(feature = "axum")]
    pub(crate) fn run_extractor<'a>(&self, parts: &'a mut Parts) -> Option<Extracting<'a>> {
        match &self.source {
            Source::Extractor(extract) => Some(extract(parts)),
            _ => None,
        }
    }

    /// Returns where the scope belongs; `None` if the client need not know, such as a header that a gateway sets.
    pub(crate) fn place(&self) -> Option<String> {
        match &self.source {
            Source::Key(key) => key.place(),
            _ => None,
        }
    }

    /// Decides about a scope that was or was not found.
    pub(crate) fn found(&self, scope: Option<String>) -> Result<Option<String>, Refusal> {
        match scope.filter(|scope| !is_blank(scope)) {
            None if !self.optional => Err(Refusal::ScopeMissing),
            scope => Ok(scope),
        }
    }

    /// Extracts the scope. `body` is empty as long as it is not [needed](Self::needs_body).
    pub(crate) fn extract(&self, parts: &Parts, body: &Bytes) -> Result<Option<String>, Refusal> {
        let scope = match &self.source {
            Source::Closure(find) => find(parts),
            Source::Body(find) => find(parts, body),
            Source::Header(name) => of_header(parts, name),
            Source::Cookie(name) => {
                let value = cookies::value(&parts.headers, name);
                value.filter(|value| !value.is_empty()).map(|value| labelled_digest(value.as_bytes()))
            }
            Source::Host => host(parts),
            Source::Extension(find, type_name) => match find(parts) {
                None if !self.optional => return Err(Refusal::ExtensionMissing { type_name }),
                scope => scope,
            },
            Source::Key(key) => match key.extract(parts, body).map_err(Refusal::scope_invalid)? {
                Some(scope) if key.is_credential() => Some(labelled_digest(scope.as_bytes())),
                scope => scope.map(Cow::into_owned),
            },
            #[cfg(feature = "axum")]
            Source::Extractor(_) => None,
        };
        self.found(scope)
    }
}

fn of_header(parts: &Parts, name: &HeaderName) -> Option<String> {
    let mut lines = parts.headers.get_all(name).iter();
    let only = lines.next().filter(|_| lines.next().is_none())?;
    let text = std::str::from_utf8(only.as_bytes()).ok().filter(|text| !text.is_empty())?;
    Some(if credential::is_secret(name) { labelled_digest(text.as_bytes()) } else { text.to_owned() })
}

impl fmt::Debug for ScopeExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopeExtractor").field("optional", &self.optional).finish_non_exhaustive()
    }
}
