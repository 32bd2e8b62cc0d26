//! Whose key it is: a tenant, a user, a merchant.
//!
//! The same key of two scopes is two operations, and no answer ever crosses from one to the other. A scope is never
//! guessed: without one, a request with other credentials than the first one's is refused (422).
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

use std::{borrow::Cow, fmt, sync::Arc};

#[cfg(feature = "axum")]
use axum::extract::FromRequestParts;
use bytes::Bytes;
use http::{HeaderName, request::Parts};

#[cfg(feature = "axum")]
use super::by_extractor::{ByExtractor, Extracting, by_extractor};
use super::key::KeyExtractor;
use crate::value::Refusal;

pub use super::into::IntoScopeExtractor;

/// Takes the scope out of a request. Made by the functions of this module.
#[derive(Clone)]
#[must_use = "a scope extractor does nothing until a layer has it"]
pub struct ScopeExtractor {
    source: Source,
    optional: bool,
}

#[derive(Clone)]
enum Source {
    Closure(Arc<ScopeFn>),
    Key(KeyExtractor),
    #[cfg(feature = "axum")]
    Extractor(Arc<ByExtractor>),
}

type ScopeFn = dyn Fn(&Parts) -> Option<String> + Send + Sync;

/// The scope is a header's value. A header that is empty, not UTF-8 or there twice counts as missing.
///
/// Take a header that something outside this layer has set or checked: whoever can choose the scope can read the
/// answers kept in it.
///
/// # Panics
///
/// Where `name` is no header name.
#[track_caller]
pub fn header(name: &str) -> ScopeExtractor {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { panic!("{name:?} is no header name") };
    from_fn(move |parts| {
        let mut lines = parts.headers.get_all(&name).iter();
        let only = lines.next().filter(|_| lines.next().is_none())?;
        std::str::from_utf8(only.as_bytes()).ok().map(ToOwned::to_owned)
    })
}

/// The scope is told by a request extension, such as the user that the authentication put there.
pub fn extension<T, V>(scope: impl Fn(&T) -> V + Send + Sync + 'static) -> ScopeExtractor
where
    T: Clone + Send + Sync + 'static,
    V: fmt::Display,
{
    from_fn(move |parts| parts.extensions.get::<T>().map(|found| scope(found).to_string()))
}

/// The scope is what the closure takes out of the request's head. `None` and an empty text mean that there is none.
pub fn from_fn(scope: impl Fn(&Parts) -> Option<String> + Send + Sync + 'static) -> ScopeExtractor {
    ScopeExtractor { source: Source::Closure(Arc::new(scope)), optional: false }
}

/// The scope is where a key could be, under a key's rules: in a query, a path, a body.
///
/// ```
/// use tower_idempotency::{key, scope};
///
/// // The number of an order is its merchant's own.
/// let merchant = scope::from_key(key::query("merchant"));
/// # drop(merchant);
/// ```
pub fn from_key(key: KeyExtractor) -> ScopeExtractor {
    ScopeExtractor { source: Source::Key(key), optional: false }
}

/// The scope is told by what an Axum extractor takes out of the request, such as the user that it authenticates.
///
/// The layer runs the extractor before it claims anything. If the extractor rejects the request, its rejection is the
/// answer: nobody without the right to ask is replayed an answer. What it extracted is left in the request's extensions,
/// where the handler takes it as `Extension<User>` instead of extracting it once more. An empty scope counts as missing.
///
/// The extractor sees the head only, since the body belongs to the layer. A request that the layer does not protect (of
/// another method, without a key where that is [optional](crate::IdempotencyLayer::optional)) does not come to it, so a
/// handler that serves such requests too takes the extractor itself.
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
/// An extractor with a state (`State<Keys>`, a pool) is for [`from_extractor_with_state`].
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

/// The same as [`from_extractor`], for an extractor that needs the application's state.
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
    ScopeExtractor { source: Source::Extractor(Arc::new(by_extractor(state, scope))), optional: false }
}

impl ScopeExtractor {
    /// The scope may be missing; all requests without one share one scope of their own.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Whether the body has to be there first.
    pub(crate) fn needs_body(&self) -> bool {
        matches!(&self.source, Source::Key(key) if key.needs_body())
    }

    /// Whether an extractor has to run first.
    pub(crate) fn needs_extractor(&self) -> bool {
        #[cfg(feature = "axum")]
        return matches!(self.source, Source::Extractor(_));
        #[cfg(not(feature = "axum"))]
        false
    }

    /// Runs the extractor, where there is one.
    #[cfg(feature = "axum")]
    pub(crate) fn run_extractor<'a>(&self, parts: &'a mut Parts) -> Option<Extracting<'a>> {
        match &self.source {
            Source::Extractor(extract) => Some(extract(parts)),
            _ => None,
        }
    }

    /// What to make of a scope that was or was not found.
    pub(crate) fn found(&self, scope: Option<String>) -> Result<Option<String>, Refusal> {
        match scope.filter(|scope| !scope.is_empty()) {
            None if !self.optional => Err(Refusal::ScopeMissing),
            scope => Ok(scope),
        }
    }

    /// The scope. `body` is empty as long as it is not [needed](Self::needs_body).
    pub(crate) fn extract(&self, parts: &Parts, body: &Bytes) -> Result<Option<String>, Refusal> {
        let scope = match &self.source {
            Source::Closure(find) => find(parts),
            Source::Key(key) => key.extract(parts, body).map_err(Refusal::KeyInvalid)?.map(Cow::into_owned),
            #[cfg(feature = "axum")]
            Source::Extractor(_) => None,
        };
        self.found(scope)
    }
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
        assert_eq!(extract(&extension(|n: &u64| *n), &[]), Err(Refusal::ScopeMissing));
    }
}
