//! Steps 3 and 4 of a request: receive the body, as much of it as the claim needs, and have the application verify it.
//!
//! Most requests are received by their response future, in place: `future` reads the whole body and goes on with
//! step 5. What needs more than that comes through `receive`: an extractor that says whose operation it is, a check by
//! the application, a body that goes to the handler as it comes, and a token in a prefix of a form.
//!
//! A refused request whose client may still be sending is drained before the response is sent (`respond/drain`): a
//! client that writes first and reads then would otherwise see a reset connection in place of the refusal. The drain is
//! bounded in bytes and time.
//!
//! Dropped here, a request leaves nothing behind: nothing is claimed yet.

use std::{pin::pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response, request::Parts};
use http_body::Body;
use tower_service::Service;

use super::{Exchange, KeyedRequest, PartialIdentity, settings::Stop};
use crate::{
    body::{
        BoxError, BrokenFlag, CollectError, Collected, Excess, IdleTimeout, Patience, RequestBody, ResponseBody, Watch,
        collect, is_over_a_limit,
    },
    value::{Event, Refusal},
};

/// A request with as much of its body as the claim needs.
pub(super) struct Received<B> {
    pub(super) incoming: Incoming<B>,
    /// The claim; `None` if the request has no key and needs none.
    pub(super) keyed: Result<Option<KeyedRequest>, Refusal>,
}

/// The body of a request on its way to the handler.
pub(super) struct Incoming<B> {
    pub(super) body: RequestBody<B>,
    /// Whether the client may still be sending.
    pub(super) sends: bool,
    /// Set if the body breaks while the handler reads it.
    pub(super) broken: Option<BrokenFlag>,
}

impl<B> Incoming<B> {
    /// Creates a body that was read to its end.
    pub(super) fn whole(whole: Collected) -> Self {
        Self { body: RequestBody::whole(whole), sends: false, broken: None }
    }
}

impl Exchange {
    /// Returns whether a request is received in place: its whole body is needed, and only the body has to be
    /// awaited.
    pub(super) fn receives_in_place(&self, parts: &Parts, subject: &PartialIdentity) -> bool {
        #[cfg(feature = "axum")]
        if subject.awaits_extractor() {
            return false;
        }
        #[cfg(feature = "form")]
        if self.looks_for(parts, subject).is_some() {
            return false;
        }
        #[cfg(not(feature = "form"))]
        let _ = parts;
        self.verify.is_none() && !self.streams(subject)
    }

    /// Receives as much of the body as the claim needs.
    ///
    /// Three ways, from the cheapest: the body streams and nothing of it is read; a prefix of it is read for a token;
    /// all of it is read.
    pub(super) async fn receive<B>(
        &self,
        parts: &Parts,
        body: B,
        mut subject: PartialIdentity,
    ) -> Result<Received<B>, Stop>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<BoxError>,
    {
        if self.streams(&subject) {
            let sends = !Self::expects_continue(&parts.headers);
            let broken = BrokenFlag::default();
            let body = RequestBody::watched(body, self.watch(&broken));
            let keyed = self.claim(parts, &Bytes::new(), &mut subject, 0);
            return Ok(Received { incoming: Incoming { body, sends, broken: Some(broken) }, keyed });
        }
        #[cfg(feature = "form")]
        if let Some(place) = self.looks_for(parts, &subject) {
            let broken = BrokenFlag::default();
            let (body, keyed) = self.claim_by_prefix(parts, body, subject, place, self.watch(&broken)).await;
            // From a client that stands still nothing more is expected.
            let sends = !matches!(keyed, Err(Refusal::BodyTimeout));
            return Ok(Received { incoming: Incoming { body, sends, broken: Some(broken) }, keyed });
        }
        let whole = self.read(parts, body).await?;
        self.verified(parts, &whole.data).await?;
        let keyed = self.claim(parts, &whole.data, &mut subject, whole.data.len());
        Ok(Received { incoming: Incoming::whole(whole), keyed })
    }

    /// Returns what notices that a streaming request breaks or stands still.
    fn watch(&self, broken: &BrokenFlag) -> Watch {
        Watch::new(broken.clone(), self.body_timeout)
    }

    /// Returns how long the body may stand still.
    pub(super) fn body_patience(&self) -> Patience {
        Patience::Idle(IdleTimeout::new(self.body_timeout))
    }

    /// Reads the whole request body.
    ///
    /// # Errors
    ///
    /// Returns a refusal if the body is longer than the limit, ends early, or stands still for too long. If it is too
    /// long, it is drained first, unless the client waits for `100 Continue` and has sent nothing.
    async fn read<B>(&self, parts: &Parts, body: B) -> Result<Collected, Refusal>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        let mut body = pin!(body);
        match collect(body.as_mut(), self.policy.request_limit, self.body_patience()).await {
            Ok(whole) => Ok(whole),
            Err(error) => {
                let (refusal, drains) = self.unreadable(parts, error);
                if drains {
                    Box::pin(Self::drain(body)).await;
                }
                Err(refusal)
            }
        }
    }

    /// Returns the refusal of a request whose body could not be read, and whether its rest is to be drained first.
    pub(super) fn unreadable<E: Into<BoxError>>(&self, parts: &Parts, error: CollectError<E>) -> (Refusal, bool) {
        match error {
            CollectError::TooLong(Excess { read }) => {
                // A client whose body was read has had its word, and sends.
                let sends = !read.is_empty() || !Self::expects_continue(&parts.headers);
                (Refusal::BodyTooLarge { limit: Some(self.policy.request_limit) }, sends)
            }
            CollectError::Stalled | CollectError::TooSlow(_) => (Refusal::BodyTimeout, false),
            CollectError::Broken(_, error) => {
                if is_over_a_limit(&*error.into()) {
                    (Refusal::BodyTooLarge { limit: None }, true)
                } else {
                    (Refusal::BodyIncomplete, false)
                }
            }
        }
    }

    /// Asks the application, if it wants to be asked.
    async fn verified(&self, parts: &Parts, body: &Bytes) -> Result<(), Stop> {
        let Some(verify) = &self.verify else { return Ok(()) };
        let verified = verify(parts.clone(), body.clone()).await;
        verified.map_err(|response| Stop::Unverified(Box::new(response)))
    }

    /// Returns the response to a request that does not reach its claim, and reports it.
    pub(super) fn stopped<B: Body>(&self, parts: &Parts, stop: Stop) -> Response<ResponseBody<B>> {
        match stop {
            Stop::Refused(refusal) => self.refuse(Some(parts), None, &refusal),
            Stop::Unverified(response) => {
                self.engine.report(&Event::Unverified { route: &self.route_of(parts), status: response.status() });
                response.map(|body| ResponseBody::whole(body, None))
            }
        }
    }

    /// Lets a request through that is not protected, once it is verified.
    pub(super) async fn pass_verified<S, B, R>(
        self: Arc<Self>,
        mut inner: S,
        mut parts: Parts,
        body: B,
    ) -> Result<Response<ResponseBody<R>>, S::Error>
    where
        S: Service<Request<RequestBody<B>>, Response = Response<R>>,
        B: Body<Data = Bytes>,
        B::Error: Into<BoxError>,
        R: Body,
    {
        let whole = match self.read(&parts, body).await {
            Ok(whole) => whole,
            Err(refusal) => return Ok(self.refuse(Some(&parts), None, &refusal)),
        };
        if let Err(stop) = self.verified(&parts, &whole.data).await {
            return Ok(self.stopped(&parts, stop));
        }
        let issued = self.insert_issuer(&mut parts, None);
        let mut answer = pass(&mut inner, parts, RequestBody::whole(whole)).await?;
        if let Some(issued) = issued {
            issued.mark(answer.headers_mut());
        }
        Ok(answer)
    }
}

/// Lets a request through unprotected.
pub(super) async fn pass<S, B, R>(
    inner: &mut S,
    parts: Parts,
    body: RequestBody<B>,
) -> Result<Response<ResponseBody<R>>, S::Error>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    R: Body,
{
    Ok(inner.call(Request::from_parts(parts, body)).await?.map(ResponseBody::passed))
}
