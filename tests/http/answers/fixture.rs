//! A route with a handler that counts its runs, and a look at what its record says.

use std::convert::Infallible;

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use http_body::Body as _;
use http_body_util::BodyExt;
use tower::{Layer, ServiceExt, service_fn, util::BoxCloneSyncService};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore, Operation,
    service::RequestBody,
    store::{RecordKey, State, StoreAdmin},
};

use crate::common::{Counter, post as send};

/// The layer around a bare service: nothing else touches what goes through.
pub(crate) struct Fixture {
    pub(crate) app: BoxCloneSyncService<Request, Response, Infallible>,
    pub(crate) runs: Counter,
    pub(crate) store: MemoryStore,
}

impl Fixture {
    /// A handler that answers with `answer`.
    pub(crate) fn new<R: IntoResponse + Send + 'static>(
        adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
        answer: impl Fn(Operation) -> R + Clone + Send + Sync + 'static,
    ) -> Self {
        Self::reading(adjust, move |operation, _| std::future::ready(answer(operation)))
    }

    /// The same with a handler that takes the whole request.
    pub(crate) fn reading<F, R>(
        adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer,
        answer: impl Fn(Operation, Request) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = R> + Send + 'static,
        R: IntoResponse,
    {
        let (store, runs) = (MemoryStore::new(), Counter::default());
        let counted = runs.clone();
        let handler = service_fn(move |request: axum::http::Request<RequestBody<Body>>| {
            counted.next();
            let operation = request.extensions().get().cloned().expect("an operation");
            let answer = answer(operation, request.map(Body::new));
            async move { Ok(answer.await.into_response()) }
        });
        let layer = adjust(IdempotencyLayer::new(store.clone()));
        let app = layer.layer(handler).map_response(|response: Response<_>| response.map(Body::new));
        Self { app: BoxCloneSyncService::new(app), runs, store }
    }

    pub(crate) async fn ask(&self) -> Response {
        self.send(send("/run", "k", "")).await
    }

    pub(crate) async fn send(&self, request: Request) -> Response {
        self.app.clone().oneshot(request).await.unwrap()
    }

    /// The state of the record of key `k`, and whether an answer is kept in it.
    pub(crate) async fn record(&self) -> Option<(State, bool)> {
        let key = RecordKey::new("/run", None, "k").unwrap();
        let record = self.store.inspect(&key).await.unwrap();
        record.map(|record| (record.state, record.payload.is_some()))
    }
}

pub(crate) const KEPT: Option<(State, bool)> = Some((State::Settled, true));
pub(crate) const TOMBSTONE: Option<(State, bool)> = Some((State::Settled, false));
pub(crate) const RELEASED: Option<(State, bool)> = Some((State::Released, false));

pub(crate) fn as_it_is(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer
}

/// Everything of an answer, for comparison: fields in the order in which they come.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Whole {
    pub(crate) status: StatusCode,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
    pub(crate) length: Option<u64>,
    pub(crate) data: Bytes,
    pub(crate) trailers: Option<HeaderMap>,
}

impl Whole {
    pub(crate) async fn of(response: Response) -> Self {
        let (parts, body) = response.into_parts();
        let length = body.size_hint().exact();
        let body = body.collect().await.expect("a whole body");
        let fields = parts.headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect();
        Self { status: parts.status, fields, length, trailers: body.trailers().cloned(), data: body.to_bytes() }
    }

    /// Takes the mark of a replay off; says whether there was one.
    pub(crate) fn unmark(&mut self) -> bool {
        let all = self.fields.len();
        self.fields.retain(|(name, value)| !(name == "idempotent-replayed" && value == b"true"));
        self.fields.len() + 1 == all
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }
}

/// The next frame of a body that is read as a client reads it.
pub(crate) async fn next(body: &mut Body) -> Option<Result<Bytes, axum::Error>> {
    Some(body.frame().await?.map(|frame| frame.into_data().unwrap_or_default()))
}
