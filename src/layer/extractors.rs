//! Axum's extractors.

use axum::{
    extract::{FromRequestParts, OptionalFromRequestParts},
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};
use std::{convert::Infallible, error::Error, fmt};

use crate::engine::Operation;

/// The rejection if a handler takes an [`Operation`], and no layer has added one: 500.
///
/// Either the route has no `IdempotencyLayer`, or the layer lets some of its requests through unprotected. In the
/// second case the handler should take an `Option<Operation>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingOperation;

impl fmt::Display for MissingOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no `Operation`: this request has not come through `.layer(IdempotencyLayer::new(..))`, or was let through \
             unprotected; take an `Option<Operation>` where that may be",
        )
    }
}

impl Error for MissingOperation {}

impl IntoResponse for MissingOperation {
    fn into_response(self) -> Response {
        #[cfg(feature = "tracing")]
        tracing::error!("{self}");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

impl<S: Sync> FromRequestParts<S> for Operation {
    type Rejection = MissingOperation;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingOperation> {
        parts.extensions.get().cloned().ok_or(MissingOperation)
    }
}

impl<S: Sync> OptionalFromRequestParts<S> for Operation {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get().cloned())
    }
}
