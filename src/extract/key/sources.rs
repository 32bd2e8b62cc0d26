use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, request::Parts};

#[cfg(feature = "axum")]
use super::PathParameters;
use super::{KeyError, KeyExtractor, extractor::KeySource};
#[cfg(feature = "json")]
use crate::extract::json;

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
    KeyExtractor(KeySource::Header { name, strict: false })
}

/// Takes the key from a query parameter, percent-decoded. A parameter that is there twice is malformed.
pub fn query(name: &str) -> KeyExtractor {
    KeyExtractor(KeySource::Query(name.into()))
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
/// Several parameters are joined as by [`all`](super::all). A route without such a parameter has no key, and its
/// requests are refused.
///
/// # Panics
///
/// Panics if no parameter is named.
#[cfg(feature = "axum")]
#[track_caller]
pub fn path(parameters: impl PathParameters) -> KeyExtractor {
    let names = parameters.names();
    assert!(!names.is_empty(), "key::path([]): no parameter of the route is named");
    KeyExtractor(KeySource::Path(names.into()))
}

/// Takes the key out of the request's head with a closure. `Ok(None)` means that there is none.
///
/// The rules for keys apply to it too: 1 to 255 bytes, no control characters. For a key in the body, use [`from_body`].
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
    KeyExtractor(KeySource::Closure(Arc::new(key)))
}

/// Takes the key out of the request's head and body with a closure, once the whole body has been read: for a body in a
/// format of its own, such as Protocol Buffers, CBOR or a JWS. `Ok(None)` means that there is none.
///
/// The layer reads the body first, within [`request_limit`](crate::IdempotencyLayer::request_limit) and
/// [`body_timeout`](crate::IdempotencyLayer::body_timeout), so a body that is too large or ends early is refused before
/// the closure sees it. The body is as the client has sent it: if it is compressed, so is what the closure sees. The
/// rules for keys apply as with [`from_fn`].
///
/// ```
/// use axum::{Router, body::Body, http::{Request, StatusCode}, routing::post};
/// use tower::ServiceExt;
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, key::{self, KeyError}};
///
/// /// The number of an order in a format of our own: its length in one byte, and then its text.
/// fn order_number(body: &[u8]) -> Result<Option<String>, KeyError> {
///     let (length, rest) = body.split_first().ok_or(KeyError::malformed("the body is empty"))?;
///     let number = rest.get(..usize::from(*length)).ok_or(KeyError::malformed("the order number is cut off"))?;
///     let number = std::str::from_utf8(number).map_err(|_| KeyError::malformed("the order number is not UTF-8"))?;
///     Ok(Some(number.to_owned()))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let layer = IdempotencyLayer::new(MemoryStore::new()).key(key::from_body(|_, body| order_number(body)));
/// let app: Router = Router::new().route("/orders", post(|| async { StatusCode::CREATED })).layer(layer);
///
/// let order = |body: &'static [u8]| app.clone().oneshot(Request::post("/orders").body(Body::from(body)).unwrap());
/// assert_eq!(order(b"\x03A-1 two chairs").await.unwrap().status(), StatusCode::CREATED);
/// let retry = order(b"\x03A-1 two chairs").await.unwrap();
/// assert_eq!(retry.headers()["idempotent-replayed"], "true");
/// // The same order number with other content is not a retry.
/// assert_eq!(order(b"\x03A-1 six chairs").await.unwrap().status(), StatusCode::UNPROCESSABLE_ENTITY);
/// assert_eq!(order(b"\xffA-1").await.unwrap().status(), StatusCode::BAD_REQUEST);
/// # }
/// ```
pub fn from_body(
    key: impl Fn(&Parts, &Bytes) -> Result<Option<String>, KeyError> + Send + Sync + 'static,
) -> KeyExtractor {
    KeyExtractor(KeySource::Body(Arc::new(key)))
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
/// The content is always there, so it can only be the last of [`first`](super::first). It cannot be part of
/// [`all`](super::all) or of a scope.
pub fn content() -> KeyExtractor {
    KeyExtractor(KeySource::Content)
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
        Ok(pointer) => KeyExtractor(KeySource::Json(pointer)),
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
    KeyExtractor(KeySource::Form(field.into()))
}

/// Takes the key from a field of a form body; a body of another media type has none. A `multipart/form-data` body is
/// searched with the feature `form` only.
pub(crate) fn field(name: &str) -> KeyExtractor {
    KeyExtractor(KeySource::Field(name.into()))
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
    KeyExtractor(KeySource::Xml(element.into()))
}
