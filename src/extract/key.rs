//! Where a request's key comes from.
//!
//! A key is business-unique: an order number, a payment's serial number, a value that the client drew once for an
//! operation and sends again on every retry. A value that is drawn anew on every try protects nothing.
//!
//! ```
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, key};
//!
//! let layer = IdempotencyLayer::new(MemoryStore::new());
//! let by_header = layer.clone().key(key::header("Idempotency-Key").strict());
//! let by_order = layer.clone().key(key::path("id"));
//! let by_content = layer.key(key::content());
//! # drop((by_header, by_order, by_content));
//! ```

use std::{borrow::Cow, fmt, sync::Arc};

use http::{HeaderName, request::Parts};
use percent_encoding::percent_decode;

use super::structured;
use crate::value::KeyError;

/// Takes the key out of a request. Made by the functions of this module.
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
    Path(Arc<str>),
    Closure(Arc<KeyFn>),
    Content,
}

/// The key is in a header, as a Structured Field string (RFC 9651) or bare: `"abc"` and `abc` are one key.
///
/// Several lines of the header are malformed, and so is anything that is neither of the two forms.
///
/// # Panics
///
/// Where `name` is no header name.
#[track_caller]
pub fn header(name: &str) -> KeyExtractor {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { panic!("{name:?} is no header name") };
    KeyExtractor(Source::Header { name, strict: false })
}

/// The key is a query parameter, percent-decoded. A parameter that is there twice is malformed.
pub fn query(name: &str) -> KeyExtractor {
    KeyExtractor(Source::Query(name.into()))
}

/// The key is a parameter of the matched route, percent-decoded: `id` of `/orders/{id}/pay`.
///
/// A route without such a parameter has no key, and its requests are refused.
#[cfg(feature = "axum")]
pub fn path(name: &str) -> KeyExtractor {
    KeyExtractor(Source::Path(name.into()))
}

/// The key is what the closure takes out of the request's head. `Ok(None)` means that there is none.
///
/// The rules for keys hold for it too: 1 to 255 bytes, no control characters.
///
/// ```
/// use tower_idempotency::{KeyError, key};
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

/// The key is the content: two requests with the same fingerprint are one operation, without any help of the client.
///
/// This is for anti-resubmit within a short retention. It cannot tell a second order from a retry of the first.
/// Without a scope, the caller's credentials take its place. Where the fingerprint is off, the key is that of the bytes.
pub fn content() -> KeyExtractor {
    KeyExtractor(Source::Content)
}

impl KeyExtractor {
    /// Accepts the quoted string form only, as draft-ietf-httpapi-idempotency-key-header-07 asks for.
    ///
    /// # Panics
    ///
    /// Where the key does not come from a header.
    #[track_caller]
    pub fn strict(self) -> Self {
        match self.0 {
            Source::Header { name, .. } => Self(Source::Header { name, strict: true }),
            other => panic!("{other:?}: only a key from a header has a strict form"),
        }
    }

    pub(crate) fn is_content(&self) -> bool {
        matches!(self.0, Source::Content)
    }

    /// The key, where the head of the request has it.
    pub(crate) fn extract<'a>(&self, parts: &'a Parts) -> Result<Option<Cow<'a, str>>, KeyError> {
        match &self.0 {
            Source::Header { name, strict } => {
                let mut lines = parts.headers.get_all(name).iter();
                let Some(line) = lines.next() else { return Ok(None) };
                if lines.next().is_some() {
                    return Err(KeyError::Repeated);
                }
                structured::parse(line.as_bytes(), *strict).map(Some)
            }
            Source::Query(name) => query_parameter(parts.uri.query().unwrap_or_default(), name),
            #[cfg(feature = "axum")]
            Source::Path(name) => super::route::path_parameter(parts, name).map(|key| key.map(Cow::Owned)),
            Source::Closure(key) => key(parts).map(|key| key.map(Cow::Owned)),
            Source::Content => Ok(None),
        }
    }
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
            Self::Path(name) => write!(f, "key::path({name:?})"),
            Self::Closure(_) => f.write_str("key::from_fn(..)"),
            Self::Content => f.write_str("key::content()"),
        }
    }
}

fn query_parameter<'a>(query: &'a str, wanted: &str) -> Result<Option<Cow<'a, str>>, KeyError> {
    let mut found = None;
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(name).is_ok_and(|name| name == wanted) && found.replace(value).is_some() {
            return Err(KeyError::Repeated);
        }
    }
    found.map(decode).transpose()
}

/// Percent-decoding with `+` for a blank. What is not UTF-8 is no key: a lossy reading would make two keys one.
fn decode(text: &str) -> Result<Cow<'_, str>, KeyError> {
    let not_text = |_| KeyError::malformed("the key is not UTF-8");
    if text.contains('+') {
        let blanks = text.replace('+', " ");
        let decoded = percent_decode(blanks.as_bytes()).decode_utf8().map_err(not_text)?;
        return Ok(Cow::Owned(decoded.into_owned()));
    }
    percent_decode(text.as_bytes()).decode_utf8().map_err(not_text)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn extract(extractor: &KeyExtractor, request: http::request::Builder) -> Result<Option<String>, KeyError> {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        extractor.extract(&parts).map(|key| key.map(Cow::into_owned))
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
        let key = |uri: &str| extract(&by_query, Request::builder().uri(uri));
        assert_eq!(key("/"), Ok(None));
        assert_eq!(key("/?idx=1&i=2"), Ok(None));
        assert_eq!(key("/?a=1&id=x%2Fa%20b+c"), Ok(Some("x/a b c".into())));
        assert_eq!(key("/?%69d=7"), Ok(Some("7".into())));
        assert_eq!(key("/?id="), Ok(Some(String::new())));
        assert_eq!(key("/?id"), Ok(Some(String::new())));
        assert_eq!(key("/?id=1&id=1"), Err(KeyError::Repeated));
        assert!(key("/?id=%ff").is_err());
    }

    #[test]
    #[should_panic(expected = "\"no blanks\" is no header name")]
    fn a_bad_header_name_is_told_at_once() {
        let _ = header("no blanks");
    }

    #[test]
    #[should_panic(expected = "key::content()")]
    fn strict_is_for_headers() {
        let _ = content().strict();
    }
}
