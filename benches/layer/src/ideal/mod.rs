//! The least that a layer with the same contract does on the happy path. What the product costs beyond this is its
//! options, and what has not been made cheaper yet.
//!
//! It does: the body is collected up to a limit; the key is checked; the credentials are part of the fingerprint, which
//! is a SHA-256 of all that may differ; a claim has a claimant and a lease; the handler's panics are caught, and it goes
//! on when its client leaves; the answer is kept without the headers of the connection, if the claim is still this
//! claimant's; duplicates receive it with a marker; a running key, other content and a full store are refused; failures
//! and panics release the claim; records expire.
//!
//! It lacks: other stores, waiting, scopes, tokens, policies, notes, observers, renewal beyond its timer, and problem
//! documents.

mod body;
mod future;
mod identity;
mod run;
mod shard;
mod store;

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use tower::{Layer, Service};

pub use self::{body::Body, future::IdealFuture};
use self::{body::Collector, store::Store};
use crate::clock::Paced;

#[derive(Clone)]
pub struct Ideal(Arc<Store>);

impl Ideal {
    /// `retention` is in milliseconds.
    pub fn new(clock: Paced, retention: u64) -> Self {
        Self(Arc::new(Store::new(clock, retention)))
    }
}

impl<S> Layer<S> for Ideal {
    type Service = IdealService<S>;

    fn layer(&self, inner: S) -> IdealService<S> {
        IdealService { inner, store: self.0.clone() }
    }
}

#[derive(Clone)]
pub struct IdealService<S> {
    inner: S,
    store: Arc<Store>,
}

impl<S, B, R> Service<Request<B>> for IdealService<S>
where
    S: Service<Request<Body<B>>, Response = Response<R>> + Clone,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: http_body::Body<Data = Bytes>,
    R: http_body::Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<Body<R>>;
    type Error = S::Error;
    type Future = IdealFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if !matches!(*request.method(), Method::POST | Method::PATCH) {
            return IdealFuture::Passing { inner: self.inner.call(request.map(|inner| Body::Passed { inner })) };
        }
        let spare = self.inner.clone();
        let inner = mem::replace(&mut self.inner, spare);
        let (head, body) = request.into_parts();
        IdealFuture::Deciding {
            body,
            collector: Collector::default(),
            asked: Some((head, inner)),
            store: Some(self.store.clone()),
        }
    }
}
