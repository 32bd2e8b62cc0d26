//! A layer around a handler that states which operation it runs.

use std::{cell::OnceCell, convert::Infallible};

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderValue, header::HeaderName},
    response::Response,
};
use proptest::prelude::ProptestConfig;
use tokio::runtime::{Builder, Runtime};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Operation, service::RequestBody, store::RecordKey};

use crate::common::{Seen, see};

/// How many cases a property is tried with, unless `PROPTEST_CASES` says so.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    // Nothing is written beside the sources.
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { ProptestConfig { cases, ..config } }
}

/// Properties are tried in plain functions.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    thread_local!(static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() });
    RUNTIME.with(|runtime| {
        runtime.get_or_init(|| Builder::new_current_thread().enable_all().build().unwrap()).block_on(future)
    })
}

pub(crate) fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ran(RecordKey),
    Refused(u16, String),
}

impl Outcome {
    pub(crate) fn refused(name: &str) -> Self {
        Self::Refused(400, name.to_owned())
    }

    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Ran(key) => Some(key.key()),
            Self::Refused(..) => None,
        }
    }

    /// A key by the rules, or a refusal that says that there is none.
    pub(crate) fn is_right(&self) -> bool {
        match self {
            Self::Ran(key) => {
                let key = key.key();
                (1..=255).contains(&key.len()) && !key.chars().any(char::is_control)
            }
            Self::Refused(400, name) => name == "key-invalid" || name == "key-missing",
            Self::Refused(..) => false,
        }
    }
}

pub(crate) fn outcome(layer: &IdempotencyLayer, request: Request) -> Outcome {
    let (seen, operation) = ask(layer, request);
    operation.map_or_else(|| Outcome::Refused(seen.status.as_u16(), seen.problem()), Outcome::Ran)
}

/// Sends a request; returns the operation if it ran.
pub(crate) fn ask(layer: &IdempotencyLayer, request: Request) -> (Seen, Option<RecordKey>) {
    let handler = service_fn(|request: axum::http::Request<RequestBody<Body>>| async move {
        let operation: Operation = request.extensions().get().cloned().expect("an operation");
        let mut response = Response::new(Body::from("ran"));
        response.extensions_mut().insert(operation.record_key().clone());
        Ok::<_, Infallible>(response)
    });
    block_on(async {
        let response = layer.layer(handler).oneshot(request).await.unwrap();
        let operation = response.extensions().get().cloned();
        (see(response).await, operation)
    })
}

/// A POST with these fields, if they are possible at all.
pub(crate) fn post(uri: &str, fields: &[(HeaderName, &[u8])], body: impl Into<Bytes>) -> Option<Request> {
    let mut request = Request::post(uri).body(Body::from(body.into())).ok()?;
    for (name, value) in fields {
        request.headers_mut().append(name.clone(), HeaderValue::from_bytes(value).ok()?);
    }
    Some(request)
}

pub(crate) const KEY: HeaderName = HeaderName::from_static("idempotency-key");
