//! The sources of a request's key.
//!
//! A key is business-unique: an order number, a payment's serial number, a value that the client drew once for an
//! operation and sends again on every retry. A value that is drawn anew on every try protects nothing.
//!
//! ```
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, key, scope};
//!
//! let layer = IdempotencyLayer::new(MemoryStore::new());
//! let by_header = layer.clone().key(key::header("Idempotency-Key").strict());
//! let by_order = layer.clone().key(key::path(["tenant", "id"]));
//! let by_content = layer.key(key::content()).scope(scope::cookie("session"));
//! # drop((by_header, by_order, by_content));
//! ```

#[cfg(feature = "axum")]
mod parameters;
mod place;

use std::{borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, request::Parts};

#[cfg(feature = "json")]
use super::json;
use super::{
    body::{pairs, structured},
    credential,
};
use crate::value::check_key;

#[cfg(feature = "axum")]
pub use self::parameters::PathParameters;
pub use super::into::IntoKeyExtractor;
pub use crate::value::KeyError;

/// An extractor of a request's key. Created by the functions of this module.
#[derive(Clone)]
#[must_use = "a key extractor does nothing until a layer has it"]
pub struct KeyExtractor(Source);

type KeyFn = dyn Fn(&Parts) -> Result<Option<String>, KeyError> + Send + Sync;

#[derive(Clone)]
enum Source {
    Header {
        name: HeaderName,
        strict: bool,
    },
    Query(Arc<str>),
    #[cfg(feature = "axum")]
    Path(Arc<[Box<str>]>),
    Closure(Arc<KeyFn>),
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

/// Takes the key from a header, as a Structured Field string (RFC 9651) or bare: `"abc"` and `abc` are one key.
///
/// Several lines of the header are malformed, and so is anything that is neither of the two forms.
///
/// # Panics
///
/// Panics if `name` is not a valid header name.
#[track_caller]
pub fn header(name: &str) -> KeyExtractor {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { panic!("{name:?} is no header name") };
    KeyExtractor(Source::Header { name, strict: false })
}

/// Takes the key from a query parameter, percent-decoded. A parameter that is there twice is malformed.
pub fn query(name: &str) -> KeyExtractor {
    KeyExtractor(Source::Query(name.into()))
}

/// Takes the key from one or several parameters of the matched route, percent-decoded: `id` of `/orders/{id}/pay`.
///
/// Name every parameter that distinguishes operations. On `/{tenant}/orders/{id}/pay`, the `id` alone would give two
/// tenants one key for the same number, and the second one's payment would not run:
///
/// ```
/// use tower_idempotency::key;
///
/// let by_order = key::path("id");
/// let by_order_of_tenant = key::path(["tenant", "id"]);
/// # drop((by_order, by_order_of_tenant));
/// ```
///
/// Several parameters are joined as by [`all`]. A route without such a parameter has no key, and its requests are
/// refused.
///
/// # Panics
///
/// Panics if no parameter is named.
#[cfg(feature = "axum")]
#[track_caller]
pub fn path(parameters: impl PathParameters) -> KeyExtractor {
    let names = parameters.names();
    assert!(!names.is_empty(), "key::path([]): no parameter of the route is named");
    KeyExtractor(Source::Path(names.into()))
}

/// Takes the key out of the request's head with a closure. `Ok(None)` means that there is none.
///
/// The rules for keys apply to it too: 1 to 255 bytes, no control characters.
///
/// ```
/// use tower_idempotency::key::{KeyError, self};
///
/// let last_segment = key::from_fn(|parts| match parts.uri.path().rsplit('/').next() {
///     Some("") | None => Err(KeyError::malformed("the path ends without an order number")),
///     Some(order) => Ok(Some(order.to_owned())),
/// });
/// # drop(last_segment);
/// ```
pub fn from_fn(key: impl Fn(&Parts) -> Result<Option<String>, KeyError> + Send + Sync + 'static) -> KeyExtractor {
    KeyExtractor(Source::Closure(Arc::new(key)))
}

/// Takes the content as the key: two requests with the same fingerprint are one operation, without any help of the
/// client.
///
/// This is for anti-resubmit within a short retention. It cannot tell a second order from a retry of the first. If the
/// fingerprint is off, the key is that of the bytes.
///
/// The layer needs to know whose content it is: set a [`scope`](crate::IdempotencyLayer::scope),
/// [`credentials`](crate::IdempotencyLayer::credentials) or [`unscoped`](crate::IdempotencyLayer::unscoped). Otherwise
/// one cookie that changes between two clicks would make two operations of them, so a layer with none of the three
/// panics when it is put around a service. A request without an [optional](crate::scope::ScopeExtractor::optional)
/// scope is distinguished by its credentials.
///
/// ```
/// use std::time::Duration;
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, key, scope};
///
/// let layer = IdempotencyLayer::new(MemoryStore::new())
///     .key(key::content())
///     .scope(scope::cookie("session"))
///     .policy(Policy::reject().retention(Duration::from_secs(3)));
/// # drop(layer);
/// ```
///
/// The content is always there, so it can only be the last of [`first`]. It cannot be part of [`all`] or of a scope.
pub fn content() -> KeyExtractor {
    KeyExtractor(Source::Content)
}

/// Takes the key from a JSON body, at `pointer` (RFC 6901): a string or an integer.
///
/// Anything else there is malformed, and so is a body that is not JSON, is nested more than 128 deep, has more than
/// 50,000 values in it, or has a member on the way twice. An integer is taken as it is written, however long.
///
/// # Panics
///
/// Panics if `pointer` is not a valid JSON pointer.
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
#[track_caller]
pub fn json(pointer: &str) -> KeyExtractor {
    match json::Pointer::parse(pointer) {
        Ok(pointer) => KeyExtractor(Source::Json(pointer)),
        Err(what) => panic!("{pointer:?}: {what}"),
    }
}

/// Takes the key from a field of a form body, `application/x-www-form-urlencoded` or `multipart/form-data`, decoded.
///
/// A body of another media type is malformed. So is a field that is there twice, a `multipart/form-data` body that is
/// torn, and a body of more than 1,000 fields.
#[cfg(feature = "form")]
#[cfg_attr(docsrs, doc(cfg(feature = "form")))]
pub fn form(field: &str) -> KeyExtractor {
    KeyExtractor(Source::Form(field.into()))
}

/// Takes the key from a field of a form body; a body of another media type has none. A `multipart/form-data` body is
/// searched with the feature `form` only.
pub(crate) fn field(name: &str) -> KeyExtractor {
    KeyExtractor(Source::Field(name.into()))
}

/// Takes the key from the text of an element of an XML body: a child of the document element, by its name as it is
/// written.
///
/// A document that is not well-formed or not UTF-8 is malformed, and so is one with a document type or with an entity
/// beyond XML's own five: nothing is expanded, and nothing external is loaded. An element that is there twice, or has
/// elements in it, is malformed too. The spelling of names is not checked.
#[cfg(feature = "xml")]
#[cfg_attr(docsrs, doc(cfg(feature = "xml")))]
pub fn xml(element: &str) -> KeyExtractor {
    KeyExtractor(Source::Xml(element.into()))
}

/// Joins several parts to one key. All of them have to be there.
///
/// Each part follows its length (`3:100,5:order,`), so that two lists of parts never make one key.
///
/// ```
/// use tower_idempotency::key;
///
/// let per_terminal = key::all([key::header("X-Terminal"), key::query("receipt")]);
/// # drop(per_terminal);
/// ```
///
/// # Panics
///
/// Panics if [`content`] is one of them.
#[track_caller]
pub fn all(parts: impl IntoIterator<Item = KeyExtractor>) -> KeyExtractor {
    let parts: Arc<[_]> = parts.into_iter().collect();
    let has_content = parts.iter().any(KeyExtractor::ends_in_content);
    assert!(!has_content, "key::all({parts:?}): {CONTENT_ELSEWHERE}");
    KeyExtractor(Source::All(parts))
}

/// Takes the first of several keys that is there.
///
/// A malformed key ends the search: the request is refused. [`content`] may be the last of them:
///
/// ```
/// use tower_idempotency::key;
///
/// // A client that sends no key is at least protected against a double click.
/// let by_header_or_content = key::first([key::header("Idempotency-Key"), key::content()]);
/// # drop(by_header_or_content);
/// ```
///
/// # Panics
///
/// Panics if [`content`] is one of them but not the last.
#[track_caller]
pub fn first(of: impl IntoIterator<Item = KeyExtractor>) -> KeyExtractor {
    let of: Arc<[_]> = of.into_iter().collect();
    let hides_others = of.iter().rev().skip(1).any(KeyExtractor::ends_in_content);
    assert!(!hides_others, "key::first({of:?}): {CONTENT_ELSEWHERE}");
    KeyExtractor(Source::First(of))
}

pub(super) const CONTENT_ELSEWHERE: &str =
    "`key::content()` is always there, so it can only be the whole key, or the last of `key::first(..)`";

impl KeyExtractor {
    /// Accepts the quoted string form only, as draft-ietf-httpapi-idempotency-key-header-07 asks for.
    ///
    /// # Panics
    ///
    /// Panics if the key does not come from a header.
    #[track_caller]
    pub fn strict(self) -> Self {
        match self.0 {
            Source::Header { name, .. } => Self(Source::Header { name, strict: true }),
            other => panic!("{other:?}: only a key from a header has a strict form"),
        }
    }

    /// Returns whether the content is the key of a request that has no other.
    pub(crate) fn ends_in_content(&self) -> bool {
        match &self.0 {
            Source::Content => true,
            Source::First(of) => of.last().is_some_and(Self::ends_in_content),
            _ => false,
        }
    }

    /// Returns the form field that a token is in.
    #[cfg(feature = "form")]
    pub(crate) fn form_field(&self) -> Option<&str> {
        match &self.0 {
            Source::Field(field) => Some(field),
            _ => None,
        }
    }

    /// Returns whether a header that carries a secret is in it.
    pub(super) fn is_credential(&self) -> bool {
        match &self.0 {
            Source::Header { name, .. } => credential::is_secret(name),
            Source::All(parts) | Source::First(parts) => parts.iter().any(Self::is_credential),
            _ => false,
        }
    }

    /// Returns whether the body has to be read first.
    pub(crate) fn needs_body(&self) -> bool {
        match &self.0 {
            #[cfg(feature = "json")]
            Source::Json(_) => true,
            #[cfg(feature = "form")]
            Source::Form(_) => true,
            Source::Field(_) => true,
            #[cfg(feature = "xml")]
            Source::Xml(_) => true,
            Source::All(parts) | Source::First(parts) => parts.iter().any(Self::needs_body),
            _ => false,
        }
    }

    /// Extracts the key. `body` is empty as long as it is not [needed](Self::needs_body).
    pub(crate) fn extract<'a>(&self, parts: &'a Parts, body: &'a Bytes) -> Result<Option<Cow<'a, str>>, KeyError> {
        match &self.0 {
            Source::Header { name, strict } => {
                let mut lines = parts.headers.get_all(name).iter();
                let Some(line) = lines.next() else { return Ok(None) };
                if lines.next().is_some() {
                    return Err(KeyError::Repeated);
                }
                structured::parse(line.as_bytes(), *strict).map(Some)
            }
            Source::Query(name) => pairs::parameter(parts.uri.query().unwrap_or_default().as_bytes(), name),
            #[cfg(feature = "axum")]
            Source::Path(names) => owned(of_path(parts, names)),
            Source::Closure(key) => owned(key(parts)),
            Source::Content => Ok(None),
            #[cfg(feature = "json")]
            Source::Json(pointer) => owned(json::key(body, pointer)),
            #[cfg(feature = "form")]
            Source::Form(field) => owned(super::body::form::key(parts, body, field)),
            #[cfg(feature = "form")]
            Source::Field(field) => owned(super::body::form::field(parts, body, field)),
            #[cfg(not(feature = "form"))]
            Source::Field(field) => pairs::field(&parts.headers, body, field),
            #[cfg(feature = "xml")]
            Source::Xml(element) => owned(super::body::xml::key(body, element)),
            Source::All(all) => {
                let mut joined = String::new();
                for part in &**all {
                    let Some(part) = part.extract(parts, body)? else { return Ok(None) };
                    join(&mut joined, &part)?;
                }
                Ok(Some(Cow::Owned(joined)))
            }
            Source::First(all) => {
                all.iter().map(|one| one.extract(parts, body)).find(|key| !matches!(key, Ok(None))).unwrap_or(Ok(None))
            }
        }
    }
}

/// Appends a part, preceded by its length.
fn join(joined: &mut String, part: &str) -> Result<(), KeyError> {
    check_key(part)?;
    joined.extend([&*part.len().to_string(), ":", part, ","]);
    Ok(())
}

#[cfg(feature = "axum")]
fn of_path(parts: &Parts, names: &[Box<str>]) -> Result<Option<String>, KeyError> {
    let Some(mut values) = super::route::path_parameters(parts, names)? else { return Ok(None) };
    if values.len() == 1 {
        return Ok(values.pop());
    }
    let mut joined = String::new();
    values.iter().try_for_each(|value| join(&mut joined, value))?;
    Ok(Some(joined))
}

fn owned<'a>(key: Result<Option<String>, KeyError>) -> Result<Option<Cow<'a, str>>, KeyError> {
    key.map(|key| key.map(Cow::Owned))
}

impl fmt::Debug for KeyExtractor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Source {
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

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn extract(extractor: &KeyExtractor, request: http::request::Builder) -> Result<Option<String>, KeyError> {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        extractor.extract(&parts, &Bytes::new()).map(|key| key.map(Cow::into_owned))
    }

    #[test]
    fn from_a_header() {
        let by_header = header("Idempotency-Key");
        assert_eq!(extract(&by_header, Request::builder()), Ok(None));
        let one = Request::builder().header("idempotency-key", "abc");
        assert_eq!(extract(&by_header, one), Ok(Some("abc".into())));
        let two = Request::builder().header("idempotency-key", "abc").header("idempotency-key", "abc");
        assert_eq!(extract(&by_header, two), Err(KeyError::Repeated));
        let bare = Request::builder().header("idempotency-key", "abc");
        assert!(extract(&by_header.strict(), bare).is_err());
    }

    #[test]
    fn from_the_query() {
        let by_query = query("id");
        assert_eq!(extract(&by_query, Request::builder().uri("/?a=1&id=x%2Fy")), Ok(Some("x/y".into())));
        assert_eq!(extract(&by_query, Request::builder().uri("/?id=1&id=1")), Err(KeyError::Repeated));
    }

    #[test]
    fn several_parts() {
        let both = all([query("a"), query("b")]);
        let key = |uri: &str| extract(&both, Request::builder().uri(uri));
        assert_eq!(key("/?a=1&b=23"), Ok(Some("1:1,2:23,".into())));
        assert_ne!(key("/?a=1&b=23"), key("/?a=12&b=3"));
        assert_eq!(key("/?a=1"), Ok(None));
        assert_eq!(key("/?a=&b=1"), Err(KeyError::Empty));
    }

    #[test]
    fn the_first_of_several() {
        let either = first([header("x-a"), query("a")]);
        assert_eq!(extract(&either, Request::builder().header("x-a", "h").uri("/?a=q")), Ok(Some("h".into())));
        assert_eq!(extract(&either, Request::builder().uri("/?a=q")), Ok(Some("q".into())));
        assert_eq!(extract(&either, Request::builder()), Ok(None));
        assert!(extract(&either, Request::builder().header("x-a", ",").uri("/?a=q")).is_err());
    }

    #[test]
    #[should_panic(expected = "\"no blanks\" is no header name")]
    fn a_bad_header_name_is_told_at_once() {
        let _ = header("no blanks");
    }

    #[test]
    fn the_content_may_be_the_last_of_several() {
        let key = first([header("x-a"), first([query("a"), content()])]);
        assert!(key.ends_in_content() && content().ends_in_content());
        assert!(!first([header("x-a"), query("a")]).ends_in_content());
        assert_eq!(extract(&key, Request::builder().header("x-a", "h")), Ok(Some("h".into())));
        assert_eq!(extract(&key, Request::builder()), Ok(None));
    }

    #[test]
    #[should_panic(expected = "key::first([key::content(), key::header(\"x-a\")]): `key::content()` is always there")]
    fn nothing_comes_after_the_content() {
        let _ = first([content(), header("x-a")]);
    }

    #[test]
    #[should_panic(expected = "key::all([key::header(\"x-a\"), key::content()])")]
    fn the_content_is_no_part_of_a_key() {
        let _ = all([header("x-a"), content()]);
    }

    #[test]
    #[should_panic(expected = "key::content()")]
    fn strict_is_for_headers() {
        let _ = content().strict();
    }
}
