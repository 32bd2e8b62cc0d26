//! The transaction as an Axum extractor.

use axum::{
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http::{StatusCode, request::Parts};

use crate::{
    engine::Operation,
    sql::{NoTransaction, SqlDatabase, Tx},
};

/// 500: the handler and its layers do not fit together.
impl IntoResponse for NoTransaction {
    fn into_response(self) -> Response {
        #[cfg(feature = "tracing")]
        tracing::error!("{self}");
        StatusCode::INTERNAL_SERVER_ERROR.into_response()
    }
}

impl<D: SqlDatabase, S: Sync> FromRequestParts<S> for Tx<D> {
    type Rejection = NoTransaction;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, NoTransaction> {
        parts.extensions.get::<Operation>().ok_or(NoTransaction::NoLayer)?.transaction()
    }
}
