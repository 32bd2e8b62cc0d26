//! Scopes by Axum's extractors.

use std::{fmt, sync::Arc};

use axum::extract::FromRequestParts;

use super::extractor::{ScopeExtractor, Source};
use crate::extract::by_extractor::by_extractor;

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
/// scope by [`extension`](super::extension).
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
