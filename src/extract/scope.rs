//! Scopes: whose key it is, such as a tenant's, a user's or a merchant's.
//!
//! The same key in two scopes is two operations, and no answer ever crosses from one scope to the other. So the scope
//! has to be all that the answer depends on: if two roles of one tenant see different answers, it is the tenant and the
//! role. A scope is never guessed: without one, the caller's [credentials](crate::credential) have to be those of the
//! first request, or the request is refused (422).
//!
//! ```
//! use tower_idempotency::{IdempotencyLayer, MemoryStore, scope};
//!
//! #[derive(Clone)]
//! struct User {
//!     id: u64,
//! }
//!
//! // `User` was put there by the authentication, which is a layer outside this one.
//! let layer = IdempotencyLayer::new(MemoryStore::new()).scope(scope::extension(|user: &User| user.id));
//! # drop(layer);
//! ```
//!
//! # What a store keeps of it
//!
//! A store keeps the scope's text, so that operators can read it, up to 255 bytes. A scope that is a credential by
//! itself is kept as `sha256:` and the SHA-256 of its value in hexadecimal digits. This applies to a [`cookie`], and to
//! a [`header`], or [`from_key`] with a header in it, if the header is known to carry a secret, such as `Authorization`
//! or `X-Api-Key`. The value of another header, such as an `X-Session` of your own, is kept as it is: take such a scope
//! by [`extension`].

use std::{any::type_name, borrow::Cow, fmt, sync::Arc};

#[cfg(feature = "axum")]
use axum::extract::FromRequestParts;
use bytes::Bytes;
use http::{HeaderName, request::Parts};

#[cfg(feature = "axum")]
use super::by_extractor::{ByExtractor, Extracting, by_extractor};
use super::{
    cookies, credential,
    key::{CONTENT_ELSEWHERE, KeyExtractor},
    route::host as host_of,
};
use crate::value::{Refusal, is_blank, labelled_digest};

pub use super::into::IntoScopeExtractor;

/// An extractor of a request's scope. Created by the functions of this module.
#[derive(Clone)]
#[must_use = "a scope extractor does nothing until a layer has it"]
pub struct ScopeExtractor {
    source: Source,
    optional: bool,
}

#[derive(Clone)]
enum Source {
    Closure(Arc<ScopeFn>),
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
type ExtensionFn = dyn Fn(&Parts) -> Option<String> + Send + Sync;

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

/// Takes the scope from what an Axum extractor takes out of the request, such as the user that it authenticates.
///
/// The layer runs the extractor before it claims anything. If the extractor rejects the request, its rejection is the
/// answer: a caller without access receives no replay. What it extracted is left in the request's extensions, and the
/// handler takes it from there as `Extension<User>` instead of extracting it once more. An empty scope counts as
/// missing.
///
/// The extractor sees the head only, since the body belongs to the layer. A request that the layer does not protect (of
/// another method, without a key if that is [optional](crate::IdempotencyLayer::key_optional)) does not reach the
/// extractor, so a handler that serves such requests too runs the extractor itself.
///
/// ```
/// use axum::{
///     Extension, Router, body::Body, extract::FromRequestParts,
///     http::{Request, StatusCode, header::AUTHORIZATION, request::Parts}, routing::post,
/// };
/// use tower::ServiceExt;
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, scope};
///
/// #[derive(Clone)]
/// struct User {
///     id: u64,
/// }
///
/// impl<S: Sync> FromRequestParts<S> for User {
///     type Rejection = StatusCode;
///
///     async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
///         match parts.headers.get(AUTHORIZATION).map(|value| value.as_bytes()) {
///             Some(b"Bearer ann") => Ok(User { id: 7 }),
///             _ => Err(StatusCode::UNAUTHORIZED),
///         }
///     }
/// }
///
/// async fn order(Extension(user): Extension<User>) -> String {
///     format!("ordered by {}", user.id)
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let idempotent = IdempotencyLayer::new(MemoryStore::new()).scope(scope::from_extractor::<User, _>(|user| user.id));
/// let app: Router = Router::new().route("/orders", post(order).layer(idempotent));
///
/// let ask = || Request::post("/orders").header("Idempotency-Key", "7f0c");
/// let anns = ask().header(AUTHORIZATION, "Bearer ann").body(Body::empty())?;
/// assert_eq!(app.clone().oneshot(anns).await?.status(), 200);
/// // A token that is revoked gets no answer replayed.
/// assert_eq!(app.oneshot(ask().body(Body::empty())?).await?.status(), 401);
/// # Ok(())
/// # }
/// ```
///
/// Use [`from_extractor_with_state`] for an extractor with a state (`State<Keys>`, a pool).
///
/// # Panics
///
/// A [`TokenLayer`](crate::TokenLayer) with this as its principal panics when it is put around a service: it needs the
/// principal of requests that it lets through, too. Put `axum::middleware::from_extractor::<User>()` outside and take a
/// scope by [`extension`].
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub fn from_extractor<E, V>(scope: impl Fn(&E) -> V + Clone + Send + Sync + 'static) -> ScopeExtractor
where
    E: FromRequestParts<()> + Clone + Send + Sync + 'static,
    V: fmt::Display,
{
    from_extractor_with_state::<E, (), V>((), scope)
}

/// Takes the scope as [`from_extractor`] does, with an extractor that needs the application's state.
///
/// ```
/// use axum::{Router, extract::{FromRef, FromRequestParts}, http::{StatusCode, request::Parts}, routing::post};
/// use std::sync::Arc;
/// use tower_idempotency::{IdempotencyLayer, MemoryStore, scope};
///
/// #[derive(Clone)]
/// struct Sessions(Arc<[&'static str]>);
///
/// #[derive(Clone)]
/// struct Session(String);
///
/// impl<S: Sync> FromRequestParts<S> for Session
/// where
///     Sessions: FromRef<S>,
/// {
///     type Rejection = StatusCode;
///
///     async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, StatusCode> {
///         let Sessions(open) = Sessions::from_ref(state);
///         let session = parts.headers.get("x-session").and_then(|value| value.to_str().ok());
///         let session = session.filter(|session| open.contains(session)).ok_or(StatusCode::UNAUTHORIZED)?;
///         Ok(Session(session.to_owned()))
///     }
/// }
///
/// let state = Sessions(Arc::new(["ann"]));
/// let scope = scope::from_extractor_with_state::<Session, _, _>(state.clone(), |session| session.0.clone());
/// let app: Router = Router::new()
///     .route("/orders", post(|| async { "ordered" }))
///     .layer(IdempotencyLayer::new(MemoryStore::new()).scope(scope))
///     .with_state(state);
/// # drop(app);
/// ```
#[cfg(feature = "axum")]
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
pub fn from_extractor_with_state<E, S, V>(
    state: S,
    scope: impl Fn(&E) -> V + Clone + Send + Sync + 'static,
) -> ScopeExtractor
where
    E: FromRequestParts<S> + Clone + Send + Sync + 'static,
    S: Clone + Send + Sync + 'static,
    V: fmt::Display,
{
    ScopeExtractor::of(Source::Extractor(Arc::new(by_extractor(state, scope))))
}

impl ScopeExtractor {
    fn of(source: Source) -> Self {
        Self { source, optional: false }
    }

    /// Allows the scope to be missing. Requests without one are distinguished by their
    /// [credentials](crate::credential), as on a layer without a scope.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Returns whether the body has to be read first.
    pub(crate) fn needs_body(&self) -> bool {
        matches!(&self.source, Source::Key(key) if key.needs_body())
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
            Source::Header(name) => of_header(parts, name),
            Source::Cookie(name) => {
                let value = cookies::value(&parts.headers, name);
                value.filter(|value| !value.is_empty()).map(|value| labelled_digest(value.as_bytes()))
            }
            Source::Host => host_of(parts),
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

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn extract(extractor: &ScopeExtractor, users: &[&str]) -> Result<Option<String>, Refusal> {
        let mut request = Request::builder();
        for user in users {
            request = request.header("x-user", *user);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        parts.extensions.insert(7_u32);
        extractor.extract(&parts, &Bytes::new())
    }

    #[test]
    fn present_missing_optional() {
        let by_header = header("X-User");
        assert_eq!(extract(&by_header, &["ann"]), Ok(Some("ann".into())));
        assert_eq!(extract(&by_header, &[]), Err(Refusal::ScopeMissing));
        assert_eq!(extract(&by_header, &[""]), Err(Refusal::ScopeMissing));
        assert_eq!(extract(&by_header, &["ann", "bob"]), Err(Refusal::ScopeMissing));
        assert_eq!(extract(&by_header.optional(), &[]), Ok(None));
        assert_eq!(extract(&extension(|n: &u32| n + 1), &[]), Ok(Some("8".into())));
        assert_eq!(extract(&extension(|n: &u64| *n), &[]), Err(Refusal::ExtensionMissing { type_name: "u64" }));
        assert_eq!(extract(&extension(|n: &u64| *n).optional(), &[]), Ok(None));
        for blank in ["", " ", "\t\u{a0}"] {
            assert_eq!(extract(&extension(move |_: &u32| blank), &[]), Err(Refusal::ScopeMissing));
        }
    }

    #[test]
    fn a_credential_is_kept_as_a_digest() {
        let (parts, ()) = Request::builder()
            .header("authorization", "Bearer secret")
            .header("cookie", "session=secret; theme=dark; theme=dark; twice=a; twice=b; empty=")
            .body(())
            .unwrap()
            .into_parts();
        let of = |extractor: ScopeExtractor| extractor.extract(&parts, &Bytes::new());
        // As `printf secret | sha256sum` prints it.
        let digest = "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        assert_eq!(of(cookie("session")), Ok(Some(digest.into())));
        assert!(of(header("Authorization")).unwrap().unwrap().starts_with("sha256:"));
        assert!(of(cookie("theme")).is_ok());
        for missing in ["twice", "empty", "none"] {
            assert_eq!(of(cookie(missing)), Err(Refusal::ScopeMissing), "{missing}");
        }
    }

    #[test]
    fn a_credential_among_keys_is_kept_as_a_digest() {
        use super::super::key;

        let (parts, ()) = Request::get("/?merchant=7")
            .header("x-api-key", "secret")
            .header("x-terminal", "3")
            .body(())
            .unwrap()
            .into_parts();
        let of = |key| from_key(key).extract(&parts, &Bytes::new()).unwrap().unwrap();
        let api_key = || key::header("X-Api-Key");
        // The same as by `scope::header`.
        assert_eq!(Ok(Some(of(api_key()))), header("X-Api-Key").extract(&parts, &Bytes::new()));
        let mixed = [
            of(key::all([key::query("merchant"), api_key()])),
            of(key::first([key::query("none"), key::all([api_key(), key::header("X-Terminal")])])),
        ];
        assert!(mixed.iter().all(|scope| scope.starts_with("sha256:")) && mixed[0] != mixed[1], "{mixed:?}");
        assert_eq!(of(key::all([key::query("merchant"), key::header("X-Terminal")])), "1:7,1:3,");
    }

    #[test]
    fn hosts() {
        for (uri, host_header, expected) in [
            ("/", Some("A.example"), Some("a.example")),
            ("/", Some("a.example.:443"), Some("a.example")),
            ("/", Some("a.example:8080"), Some("a.example:8080")),
            ("/", Some("[::1]:80"), Some("[::1]")),
            // HTTP/2, and an absolute target: the target counts.
            ("https://b.example/", Some("a.example"), Some("b.example")),
            ("https://B.example:443/", None, Some("b.example")),
            ("/", Some(""), None),
            ("/", Some("a b"), None),
            ("/", None, None),
        ] {
            let request = Request::builder().uri(uri);
            let request = host_header.into_iter().fold(request, |request, host| request.header("host", host));
            let (parts, ()) = request.body(()).unwrap().into_parts();
            let found = host().optional().extract(&parts, &Bytes::new());
            assert_eq!(found, Ok(expected.map(Into::into)), "{uri} {host_header:?}");
        }
        let (parts, ()) = Request::builder().header("host", "a").header("host", "b").body(()).unwrap().into_parts();
        assert_eq!(host().extract(&parts, &Bytes::new()), Err(Refusal::ScopeMissing));
    }

    #[test]
    #[should_panic(expected = "scope::from_key(key::content()): `key::content()` is always there")]
    fn the_content_is_no_scope() {
        let _ = from_key(super::super::key::content());
    }

    #[test]
    #[should_panic(expected = "\"a b\" is no name of a cookie")]
    fn a_bad_name_of_a_cookie_is_told_at_once() {
        let _ = cookie("a b");
    }
}
