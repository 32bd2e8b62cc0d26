//! The Tower service: it decides which way a request takes, without polling anything.
//!
//! There are four ways. *Pass*: the layer does not protect the request, and its future is that of the inner service.
//! *Ready*: the head alone shows that the request is refused. *Receive*: the request has a key, or will have one once its
//! body is there. *Task*: something else has to be awaited first, such as a check by the application.
//!
//! `poll_ready` delegates to the inner service. `call` uses the instance that was polled ready (`take_ready`) and
//! leaves a clone in its place, as the documentation of `tower::Service` demands.
//!
//! The inner service is called exactly once for each instance that was polled ready: directly on the way *pass*, by the
//! future on the others. Tests of readiness use a mock that panics if it is called unready.

use std::{
    mem,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use tower_service::Service;

use super::{Exchange, ResponseFuture};
use crate::{
    body::{BoxError, RequestBody, ResponseBody},
    engine::{Begun, Task},
    value::Protection,
};

/// A service that makes operations safe to repeat. Created by [`IdempotencyLayer`](crate::IdempotencyLayer) and
/// [`TokenLayer`](crate::TokenLayer).
///
/// Its errors are those of the inner service; the layer itself answers with responses only. It is ready when the inner
/// service is.
#[derive(Clone, Debug)]
pub struct Idempotency<S> {
    inner: S,
    /// The settings, shared by all clones of the service.
    exchange: Arc<Exchange>,
}

impl<S> Idempotency<S> {
    /// Puts the settings around a service. They were checked before.
    pub(crate) fn new(inner: S, exchange: Arc<Exchange>) -> Self {
        Self { inner, exchange }
    }

    /// Returns a reference to the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns a mutable reference to the inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// Returns the inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }

    /// Takes the service that was asked for its readiness, which is the one to call.
    fn take_ready(&mut self) -> S
    where
        S: Clone,
    {
        let clone = self.inner.clone();
        mem::replace(&mut self.inner, clone)
    }

    /// Lets a request through that is not protected, once it is verified if the layer verifies.
    fn pass_unprotected<B, R>(&mut self, parts: Parts, body: B) -> ResponseFuture<S, B, R>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
        S::Future: Send,
        S::Error: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError> + Send,
        R: Body<Data = Bytes> + Send + 'static,
    {
        if self.exchange.verify.is_none() {
            return self.pass(Request::from_parts(parts, body));
        }
        let pass = self.exchange.clone().pass_verified(self.take_ready(), parts, body);
        ResponseFuture::task(Task::begin(async move { Begun::Ended(pass.await) }))
    }

    /// Lets a request through that is not protected.
    fn pass<B, R>(&mut self, request: Request<B>) -> ResponseFuture<S, B, R>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        R: Body,
    {
        if self.exchange.tokens.is_none() {
            return ResponseFuture::pass(self.inner.call(request.map(RequestBody::passed)), None);
        }
        let (mut parts, body) = request.into_parts();
        let issued = self.exchange.insert_issuer(&mut parts, None);
        let request = Request::from_parts(parts, RequestBody::passed(body));
        ResponseFuture::pass(self.inner.call(request), issued)
    }
}

impl<S, B, R> Service<Request<B>> for Idempotency<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // Looked at where it lies: most of what a layer costs such a request would be moving it.
        if !self.exchange.is_protected(request.method()) {
            return self.pass(request);
        }
        let (parts, body) = request.into_parts();
        if self.exchange.leaves_out(&parts) {
            return self.pass(Request::from_parts(parts, body));
        }
        let protection = self.exchange.protection(&parts);
        if protection == Protection::Off {
            return self.pass_unprotected(parts, body);
        }
        match self.exchange.subject(&parts) {
            Ok(None) => {
                self.exchange.report_keyless(&parts);
                self.pass_unprotected(parts, body)
            }
            Err(refusal) if protection == Protection::ObserveOnly => {
                self.exchange.report_would_refuse(&parts, &refusal);
                self.pass_unprotected(parts, body)
            }
            Err(refusal) => {
                let response = self.exchange.refuse(Some(&parts), None, &refusal);
                if body.is_end_stream() || Exchange::expects_continue(&parts.headers) {
                    return ResponseFuture::ready(response);
                }
                let drain = async move {
                    Exchange::drain(body).await;
                    Begun::Ended(Ok(response))
                };
                ResponseFuture::task(Task::begin(drain))
            }
            Ok(Some(mut subject)) => {
                subject.only_observed = protection == Protection::ObserveOnly;
                let service = self.take_ready();
                let exchange = self.exchange.clone();
                if exchange.receives_in_place(&parts, &subject) {
                    return ResponseFuture::receive(exchange, service, parts, body, subject);
                }
                ResponseFuture::task(Task::begin(exchange.receive_and_begin(service, parts, body, subject)))
            }
        }
    }
}
