use std::{borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, request::Parts};

use super::join::join;
#[cfg(feature = "axum")]
use super::join::of_path;
#[cfg(feature = "json")]
use crate::extract::json;
use crate::{
    extract::{
        body::{pairs, structured},
        credential,
    },
    value::KeyError,
};

/// An extractor of a request's key. Created by the functions of this module.
#[derive(Clone)]
#[must_use = "a key extractor does nothing until a layer has it"]
pub struct KeyExtractor(pub(super) KeySource);

type KeyFn = dyn Fn(&Parts) -> Result<Option<String>, KeyError> + Send + Sync;
type KeyOfBodyFn = dyn Fn(&Parts, &Bytes) -> Result<Option<String>, KeyError> + Send + Sync;

#[derive(Clone)]
pub(super) enum KeySource {
    Header {
        name: HeaderName,
        strict: bool,
    },
    Query(Arc<str>),
    #[cfg(feature = "axum")]
    Path(Arc<[Box<str>]>),
    Closure(Arc<KeyFn>),
    Body(Arc<KeyOfBodyFn>),
    Content,
    #[cfg(feature = "json")]
    Json(json::Pointer),
    #[cfg(feature = "form")]
    Form(Arc<str>),
    /// The same; a body of another type has no key.
    Field(Arc<str>),
    #[cfg(feature = "xml")]
    Xml(Arc<str>),
    All(Arc<[KeyExtractor]>),
    First(Arc<[KeyExtractor]>),
}

impl KeyExtractor {
    /// Accepts the quoted string form only, as draft-ietf-httpapi-idempotency-key-header-07 asks for.
    ///
    /// # Panics
    ///
    /// Panics if the key does not come from a header.
    #[track_caller]
    pub fn strict(self) -> Self {
        match self.0 {
            KeySource::Header { name, .. } => Self(KeySource::Header { name, strict: true }),
            other => panic!("{other:?}: only a key from a header has a strict form"),
        }
    }

    /// Returns whether the content is the key of a request that has no other.
    pub(crate) fn ends_in_content(&self) -> bool {
        match &self.0 {
            KeySource::Content => true,
            KeySource::First(of) => of.last().is_some_and(Self::ends_in_content),
            _ => false,
        }
    }

    /// Returns the form field that a token is in.
    #[cfg(feature = "form")]
    pub(crate) fn form_field(&self) -> Option<&str> {
        match &self.0 {
            KeySource::Field(field) => Some(field),
            _ => None,
        }
    }

    /// Returns whether a header that carries a secret is in it.
    pub(in crate::extract) fn is_credential(&self) -> bool {
        match &self.0 {
            KeySource::Header { name, .. } => credential::is_secret(name),
            KeySource::All(parts) | KeySource::First(parts) => parts.iter().any(Self::is_credential),
            _ => false,
        }
    }

    /// Returns whether the body has to be read first.
    pub(crate) fn needs_body(&self) -> bool {
        match &self.0 {
            #[cfg(feature = "json")]
            KeySource::Json(_) => true,
            #[cfg(feature = "form")]
            KeySource::Form(_) => true,
            KeySource::Field(_) | KeySource::Body(_) => true,
            #[cfg(feature = "xml")]
            KeySource::Xml(_) => true,
            KeySource::All(parts) | KeySource::First(parts) => parts.iter().any(Self::needs_body),
            _ => false,
        }
    }

    /// Extracts the key. `body` is empty as long as it is not [needed](Self::needs_body).
    pub(crate) fn extract<'a>(&self, parts: &'a Parts, body: &'a Bytes) -> Result<Option<Cow<'a, str>>, KeyError> {
        match &self.0 {
            KeySource::Header { name, strict } => {
                let mut lines = parts.headers.get_all(name).iter();
                let Some(line) = lines.next() else { return Ok(None) };
                if lines.next().is_some() {
                    return Err(KeyError::Repeated);
                }
                structured::parse(line.as_bytes(), *strict).map(Some)
            }
            KeySource::Query(name) => pairs::parameter(parts.uri.query().unwrap_or_default().as_bytes(), name),
            #[cfg(feature = "axum")]
            KeySource::Path(names) => owned(of_path(parts, names)),
            KeySource::Closure(key) => owned(key(parts)),
            KeySource::Body(key) => owned(key(parts, body)),
            KeySource::Content => Ok(None),
            #[cfg(feature = "json")]
            KeySource::Json(pointer) => owned(json::key(body, pointer)),
            #[cfg(feature = "form")]
            KeySource::Form(field) => owned(crate::extract::body::form::key(parts, body, field)),
            #[cfg(feature = "form")]
            KeySource::Field(field) => owned(crate::extract::body::form::field(parts, body, field)),
            #[cfg(not(feature = "form"))]
            KeySource::Field(field) => pairs::field(&parts.headers, body, field),
            #[cfg(feature = "xml")]
            KeySource::Xml(element) => owned(crate::extract::body::xml::key(body, element)),
            KeySource::All(all) => {
                let mut joined = String::new();
                for part in &**all {
                    let Some(part) = part.extract(parts, body)? else { return Ok(None) };
                    join(&mut joined, &part)?;
                }
                Ok(Some(Cow::Owned(joined)))
            }
            KeySource::First(all) => {
                all.iter().map(|one| one.extract(parts, body)).find(|key| !matches!(key, Ok(None))).unwrap_or(Ok(None))
            }
        }
    }
}

fn owned<'a>(key: Result<Option<String>, KeyError>) -> Result<Option<Cow<'a, str>>, KeyError> {
    key.map(|key| key.map(Cow::Owned))
}

impl fmt::Debug for KeyExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { name, .. } => write!(f, "key::header({:?})", name.as_str()),
            Self::Query(name) => write!(f, "key::query({name:?})"),
            #[cfg(feature = "axum")]
            Self::Path(names) => match &**names {
                [name] => write!(f, "key::path({name:?})"),
                names => write!(f, "key::path({names:?})"),
            },
            Self::Closure(_) => f.write_str("key::from_fn(..)"),
            Self::Body(_) => f.write_str("key::from_body(..)"),
            Self::Content => f.write_str("key::content()"),
            #[cfg(feature = "json")]
            Self::Json(pointer) => write!(f, "key::json({pointer:?})"),
            #[cfg(feature = "form")]
            Self::Form(field) => write!(f, "key::form({field:?})"),
            Self::Field(field) => write!(f, "the field {field:?}"),
            #[cfg(feature = "xml")]
            Self::Xml(element) => write!(f, "key::xml({element:?})"),
            Self::All(parts) => write!(f, "key::all({parts:?})"),
            Self::First(of) => write!(f, "key::first({of:?})"),
        }
    }
}
