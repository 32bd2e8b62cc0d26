use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_idempotency::Operation;
use tower_service::Service;

use super::{AnswerBody, HandlerFuture};
use crate::call::{Call, LeftAlone};

/// The service behind the layer, as the core calls it.
///
/// The answer to a protected call has, on its way through the core, a status of HTTP that says how the call ended.
#[derive(Clone, Debug)]
pub struct Handler<S> {
    pub(crate) inner: S,
}

impl<S, B, R> Service<Request<B>> for Handler<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Body<Data = Bytes>,
{
    type Response = Response<AnswerBody<R>>;
    type Error = S::Error;
    type Future = HandlerFuture<S::Future, R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let extensions = request.extensions_mut();
        extensions.remove::<LeftAlone>();
        let call = extensions.remove::<Arc<Call>>();
        let operation = extensions.get::<Operation>().cloned();
        let run = match (call, operation) {
            (Some(call), Some(operation)) => Some((call, operation)),
            (Some(call), None) => {
                // It has no key and needs none, or the store is away and the layer lets calls through.
                call.pass(request.headers_mut());
                None
            }
            (None, _) => None,
        };
        HandlerFuture::new(self.inner.call(request), run)
    }
}
