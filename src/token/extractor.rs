//! Axum's extractor of the issuer.

use std::{error::Error, fmt};

use axum::{
    body::Body,
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};

use super::{IssueError, TokenIssuer};

/// The rejection if a handler takes a [`TokenIssuer`], and no layer has added one: 500. The route has no `TokenLayer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingTokenIssuer;

impl fmt::Display for MissingTokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no `TokenIssuer`: this request has not come through `.layer(tokens.layer(..))`")
    }
}

impl Error for MissingTokenIssuer {}

impl IntoResponse for MissingTokenIssuer {
    fn into_response(self) -> Response {
        #[cfg(feature = "tracing")]
        tracing::error!("{self}");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

impl<S: Sync> FromRequestParts<S> for TokenIssuer {
    type Rejection = MissingTokenIssuer;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, MissingTokenIssuer> {
        parts.extensions.get().cloned().ok_or(MissingTokenIssuer)
    }
}

impl IntoResponse for IssueError {
    fn into_response(self) -> Response {
        self.into_response().map(Body::from)
    }
}
