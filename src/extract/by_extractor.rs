use std::{fmt, future::Future, pin::Pin};

use axum::{
    extract::FromRequestParts,
    response::{IntoResponse, Response as AxumResponse},
};
use bytes::Bytes;
use http::{Response, request::Parts};
use http_body_util::{BodyExt, Collected};

/// Runs an extractor and takes the scope out of its value; or gives the extractor's rejection back.
pub(crate) type ByExtractor = dyn for<'a> Fn(&'a mut Parts) -> Extracting<'a> + Send + Sync;

/// A scope, or the answer to a request that was rejected.
pub(crate) type Extracting<'a> = Pin<Box<dyn Future<Output = Result<String, Box<Response<Bytes>>>> + Send + 'a>>;

/// Takes the scope from what `E` extracts, which is left in the request's extensions.
pub(super) fn by_extractor<E, S, V>(
    state: S,
    scope: impl Fn(&E) -> V + Clone + Send + Sync + 'static,
) -> impl for<'a> Fn(&'a mut Parts) -> Extracting<'a> + Send + Sync + 'static
where
    E: FromRequestParts<S> + Clone + Send + Sync + 'static,
    S: Clone + Send + Sync + 'static,
    V: fmt::Display,
{
    move |parts| {
        let (state, scope) = (state.clone(), scope.clone());
        Box::pin(async move {
            let extracted = E::from_request_parts(parts, &state).await.map_err(IntoResponse::into_response);
            match extracted {
                Ok(extracted) => {
                    let scope = scope(&extracted).to_string();
                    parts.extensions.insert(extracted);
                    Ok(scope)
                }
                Err(rejection) => Err(Box::new(whole(rejection).await)),
            }
        })
    }
}

/// Collects the body of a response. A body that breaks becomes empty.
async fn whole(response: AxumResponse) -> Response<Bytes> {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    Response::from_parts(parts, body)
}
