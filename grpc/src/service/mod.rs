//! The service of the layer, with the bodies and the futures that are in its signature.
//!
//! A request meets `GrpcIdempotency` first, then the `Idempotency` of [`tower_idempotency`], then `Handler`, then the
//! service of the application. The answer goes the same way back.

mod body;
mod deadline;
mod future;

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_idempotency::service::{Idempotency, RequestBody};
use tower_service::Service;

pub use self::{body::GrpcBody, future::GrpcFuture};
use crate::{
    BoxError,
    call::{Call, LeftAlone},
    method::{Settings, Treatment},
};
pub use crate::{
    answer::{AnswerBody, Handler, HandlerFuture},
    request::CallBody,
};

/// A service that makes calls of gRPC safe to repeat. Created by [`GrpcLayer`](crate::GrpcLayer).
///
/// Its errors are those of the inner service; the layer itself answers with statuses only. It is ready when the inner
/// service is.
#[derive(Clone, Debug)]
pub struct GrpcIdempotency<S> {
    core: Idempotency<Handler<S>>,
    settings: Arc<Settings>,
}

impl<S> GrpcIdempotency<S> {
    pub(crate) fn new(core: Idempotency<Handler<S>>, settings: Arc<Settings>) -> Self {
        Self { core, settings }
    }

    /// Returns a reference to the inner service.
    pub fn get_ref(&self) -> &S {
        &self.core.get_ref().inner
    }
}

impl<S, B, R> Service<Request<B>> for GrpcIdempotency<S>
where
    S: Service<Request<RequestBody<CallBody<B>>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    type Response = Response<GrpcBody<R>>;
    type Error = S::Error;
    type Future = GrpcFuture<S, B, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.core.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        match self.settings.treatment(&parts) {
            Treatment::Alone => {
                parts.extensions.insert(LeftAlone);
                let request = Request::from_parts(parts, CallBody::passed(body));
                GrpcFuture::alone(self.core.call(request))
            }
            Treatment::Protected => {
                let deadline = deadline::of(&parts.headers);
                let call = Arc::new(Call::new(self.settings.clone(), parts.uri.path(), &mut parts.headers));
                parts.extensions.insert(call.clone());
                let request = Request::from_parts(parts, CallBody::of_call(body, call));
                GrpcFuture::protected(self.core.call(request), deadline)
            }
        }
    }
}
