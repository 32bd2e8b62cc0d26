use std::{any::type_name, fmt, sync::Arc};

use bytes::Bytes;
use http::{HeaderName, request::Parts};

use super::extractor::{ScopeExtractor, Source};
use crate::extract::{
    cookies,
    key::{CONTENT_ELSEWHERE, KeyExtractor},
};

/// Takes the scope from a header. A header that is empty, not UTF-8 or there twice counts as missing.
///
/// Take a header that something outside this layer has set or checked: a client that can choose the scope can read the
/// answers kept in it.
///
/// # Panics
///
/// Panics if `name` is not a valid header name.
#[track_caller]
pub fn header(name: &str) -> ScopeExtractor {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { panic!("{name:?} is no header name") };
    ScopeExtractor::of(Source::Header(name))
}

/// Takes the scope from a cookie, such as the session's. A cookie that is empty, not UTF-8 or there twice with two
/// values counts as missing.
///
/// It is for a cookie that stays as long as a client may retry. A session that gets a new id with each answer is better
/// looked up by a layer outside this one, for [`extension`].
///
/// # Panics
///
/// Panics if `name` is not a valid cookie name (RFC 6265, section 4.1.1).
#[track_caller]
pub fn cookie(name: &str) -> ScopeExtractor {
    assert!(cookies::is_name(name), "{name:?} is no name of a cookie");
    ScopeExtractor::of(Source::Cookie(name.into()))
}

/// Takes the host that the request was sent to as the scope, for tenants that have a host each: HTTP/2's
/// `:authority`, the host of an absolute target, or the header `Host` (RFC 9112, section 3.2.2).
///
/// The host is in lower case, without the ports 80 and 443 and without a dot at its end. Take it only if something
/// outside this layer answers requests for other hosts than the tenants', and if no client retries by another name of
/// the same host.
pub fn host() -> ScopeExtractor {
    ScopeExtractor::of(Source::Host)
}

/// Takes the scope from a request extension, such as the user that the authentication inserted.
///
/// The layer that inserts the extension has to be outside this one. With Axum, that is the `.layer` that comes later:
///
/// ```
/// # use axum::{Router, extract::Request, middleware::{self, Next}, response::Response, routing::post};
/// # use tower_idempotency::{IdempotencyLayer, MemoryStore, scope};
/// # #[derive(Clone)]
/// # struct User { id: u64 }
/// # async fn authenticate(mut request: Request, next: Next) -> Response {
/// #     request.extensions_mut().insert(User { id: 7 });
/// #     next.run(request).await
/// # }
/// # let idempotent = IdempotencyLayer::new(MemoryStore::new());
/// let app: Router = Router::new()
///     .route("/orders", post(|| async { "ordered" }))
///     .layer(idempotent.scope(scope::extension(|user: &User| user.id)))
///     .layer(middleware::from_fn(authenticate));
/// # drop(app);
/// ```
///
/// A request without the extension is answered with 500 `extension-missing`, and an ERROR in the log names the type:
/// the service is at fault, and the client can do nothing. Call [`optional`](ScopeExtractor::optional) if the layer
/// also serves requests that nobody authenticates.
pub fn extension<T, V>(scope: impl Fn(&T) -> V + Send + Sync + 'static) -> ScopeExtractor
where
    T: Clone + Send + Sync + 'static,
    V: fmt::Display,
{
    let find = move |parts: &Parts| parts.extensions.get::<T>().map(|found| scope(found).to_string());
    ScopeExtractor::of(Source::Extension(Arc::new(find), type_name::<T>()))
}

/// Takes the scope out of the request's head with a closure. `None` and an empty text mean that there is none.
pub fn from_fn(scope: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> ScopeExtractor {
    ScopeExtractor::of(Source::Closure(Arc::new(scope)))
}

/// Takes the scope out of the request's head and body with a closure, once the whole body has been read. `None` and an
/// empty text mean that there is none.
///
/// The body is read and seen as by [`key::from_body`](crate::key::from_body). A scope that a client writes into the
/// body by itself protects nobody: take one that its signature covers.
///
/// ```
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, key, scope};
///
/// // The first line names the merchant, the second one the order.
/// fn line(body: &[u8], at: usize) -> Option<String> {
///     std::str::from_utf8(body).ok()?.lines().nth(at).map(str::to_owned)
/// }
///
/// let layer = IdempotencyLayer::new(MemoryStore::new())
///     .key(key::from_body(|_, body| Ok(line(body, 1))))
///     .scope(scope::from_body(|_, body| line(body, 0)));
/// # drop(layer);
/// ```
pub fn from_body(scope: impl Fn(&Parts, &Bytes) -> Option<String> + Send + Sync + 'static) -> ScopeExtractor {
    ScopeExtractor::of(Source::Body(Arc::new(scope)))
}

/// Takes the scope from a place that can have a key, under a key's rules: in a query, a path, a body.
///
/// ```
/// use tower_idempotency::{key, scope};
///
/// // The number of an order is its merchant's own.
/// let merchant = scope::from_key(key::query("merchant"));
/// # drop(merchant);
/// ```
///
/// # Panics
///
/// Panics if the key is, or ends in, [`key::content`](crate::key::content), which identifies no caller.
#[track_caller]
pub fn from_key(key: KeyExtractor) -> ScopeExtractor {
    assert!(!key.ends_in_content(), "scope::from_key({key:?}): {CONTENT_ELSEWHERE}");
    ScopeExtractor::of(Source::Key(key))
}
