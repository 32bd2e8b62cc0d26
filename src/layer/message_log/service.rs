//! One request: its body, the message, the service behind, the status.
//!
//! | the future is dropped | what is left |
//! | --- | --- |
//! | while the body is read | nothing |
//! | while the message is written | the message, or nothing |
//! | while the service behind works | the message, without a status |
//! | while the status is noted | the message, with or without its status |

use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tokio::time::timeout;
use tower_service::Service;

use super::{message::MessageId, settings::MessageLogSettings};
use crate::{
    body::{BufferedBody, IdleTimeout, ResponseBody},
    problem::{self, Problem, TYPE_BASE},
    sql::message_log::IncomingMessage,
    value::{Refusal, StoreError, StoreErrorKind},
};

/// How long a client waits before it sends a request again that was not logged.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A service that logs what comes in. Created by [`MessageLogLayer`](crate::MessageLogLayer).
///
/// Its errors are those of the inner service, and it is ready when the inner service is.
#[derive(Clone, Debug)]
pub struct MessageLogService<S> {
    inner: S,
    settings: Arc<MessageLogSettings>,
}

impl<S> MessageLogService<S> {
    pub(super) fn new(inner: S, settings: Arc<MessageLogSettings>) -> Self {
        Self { inner, settings }
    }
}

impl<S, B, R> Service<Request<B>> for MessageLogService<S>
where
    S: Service<Request<BufferedBody<B>>, Response = Response<R>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Send,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = MessageLogFuture<R, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let clone = self.inner.clone();
        // The service that was polled ready is the one to call.
        let ready = mem::replace(&mut self.inner, clone);
        MessageLogFuture { logged: Box::pin(Arc::clone(&self.settings).log(ready, request)) }
    }
}

type LoggedAnswer<R, E> = Result<Response<ResponseBody<R>>, E>;

/// The future of a [`MessageLogService`]'s response.
#[must_use = "futures do nothing unless polled"]
pub struct MessageLogFuture<R: Body, E> {
    logged: Pin<Box<dyn Future<Output = LoggedAnswer<R, E>> + Send>>,
}

impl<R: Body, E> Future for MessageLogFuture<R, E> {
    type Output = LoggedAnswer<R, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.logged.as_mut().poll(cx)
    }
}

impl<R: Body, E> fmt::Debug for MessageLogFuture<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageLogFuture").finish_non_exhaustive()
    }
}

impl MessageLogSettings {
    /// Writes a request to the log, passes it on, and notes the status of its answer.
    async fn log<S, B, R>(self: Arc<Self>, mut service: S, request: Request<B>) -> LoggedAnswer<R, S::Error>
    where
        S: Service<Request<BufferedBody<B>>, Response = Response<R>>,
        B: Body<Data = Bytes>,
        R: Body<Data = Bytes>,
    {
        let (mut parts, body) = request.into_parts();
        let limit = self.sink.body_limit();
        let body = BufferedBody::read(Box::pin(body), limit, IdleTimeout::new(self.body_timeout)).await;
        let (beginning, is_whole) = body.beginning(limit);
        // What is written is not held while the service behind works.
        let id = match self.write(self.message(&parts, beginning, is_whole)).await {
            Ok(id) => Some(id),
            Err(()) if self.fails_open => None,
            Err(()) => return Ok(self.refusal().map(|data| ResponseBody::whole(data, None))),
        };
        if let Some(id) = &id {
            parts.extensions.insert(id.clone());
        }
        let response = service.call(Request::from_parts(parts, body)).await?;
        if let Some(id) = id.filter(|_| self.notes_answers) {
            self.note(&id, response.status().as_u16()).await;
        }
        Ok(response.map(ResponseBody::passed))
    }

    /// Writes a message, and reports a failure.
    async fn write(&self, message: IncomingMessage) -> Result<MessageId, ()> {
        match timeout(self.timeout, self.sink.write(&message)).await.unwrap_or_else(|_| Err(too_late())) {
            Ok(()) => Ok(MessageId::of(&message)),
            Err(error) => {
                let what = if self.fails_open { "goes on" } else { "is refused" };
                report(&error, &format_args!("a message on {} could not be logged; its request {what}", message.route));
                Err(())
            }
        }
    }

    /// Notes the status of an answer. If that fails, the client receives the answer all the same.
    async fn note(&self, id: &MessageId, status: u16) {
        let noted = timeout(self.timeout, self.sink.answered(id.as_str(), status)).await;
        if let Err(error) = noted.unwrap_or_else(|_| Err(too_late())) {
            report(&error, &format_args!("the answer to message {} could not be noted", id.as_str()));
        }
    }

    /// Returns the answer to a request that could not be logged.
    fn refusal(&self) -> Response<Bytes> {
        let refusal = Refusal::NotLogged;
        let mut response = match &self.render {
            Some(render) => render(&refusal),
            None => Problem { refusal: &refusal, base: TYPE_BASE, place: None, instance: None, link: false }.render(),
        };
        problem::set_retry_after(&mut response, &refusal, RETRY_AFTER);
        response
    }
}

fn too_late() -> StoreError {
    StoreError::new(StoreErrorKind::Timeout, "the log did not answer in time")
}

#[cfg(feature = "tracing")]
fn report(error: &StoreError, what: &fmt::Arguments<'_>) {
    tracing::warn!(%error, kind = ?error.kind(), "{what}");
}

#[cfg(not(feature = "tracing"))]
fn report(_: &StoreError, _: &fmt::Arguments<'_>) {}
