use std::{fmt, sync::Arc, time::SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, request::Parts};

use super::{RecordKey, TraceContext};

/// An answer that the application gives in place of the layer's.
#[derive(Clone)]
pub struct Reply(Arc<ReplyFn>);

type ReplyFn = dyn Fn(&Duplicate<'_>) -> Response<Bytes> + Send + Sync;

impl Reply {
    /// Creates a reply that always gives the same answer.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use tower_idempotency::policy::Reply;
    ///
    /// let success = Reply::fixed(http::Response::new(Bytes::from_static(b"success")));
    /// # drop(success);
    /// ```
    #[must_use]
    pub fn fixed(response: Response<Bytes>) -> Self {
        Self::from_fn(move |_| response.clone())
    }

    /// Creates a reply that makes an answer for each duplicate, from its head and from what was kept for it.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::{Response, StatusCode};
    /// use tower_idempotency::{OnDuplicate, policy::Reply};
    ///
    /// // 200 with the first answer's body, whatever its status of success was.
    /// let already = Reply::from_fn(|duplicate| {
    ///     let mut response = duplicate.kept().map(|kept| kept.to_response()).unwrap_or_default();
    ///     *response.status_mut() = StatusCode::OK;
    ///     response
    /// });
    /// let on_duplicate = OnDuplicate::Respond(already);
    /// # drop(on_duplicate);
    /// ```
    pub fn from_fn(reply: impl Fn(&Duplicate<'_>) -> Response<Bytes> + Send + Sync + 'static) -> Self {
        Self(Arc::new(reply))
    }

    pub(crate) fn to(&self, duplicate: &Duplicate<'_>) -> Response<Bytes> {
        (self.0)(duplicate)
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply(..)")
    }
}

/// A request that is a duplicate, for the [`Reply`] that answers it.
#[derive(Clone, Copy)]
pub struct Duplicate<'a> {
    pub(crate) key: &'a RecordKey,
    pub(crate) head: &'a Parts,
    pub(crate) kept: Option<&'a KeptAnswer>,
}

impl<'a> Duplicate<'a> {
    /// Returns the name of the operation in the store: route, scope and key.
    #[must_use]
    pub fn key(&self) -> &'a RecordKey {
        self.key
    }

    /// Returns the head of this request, not of the first one.
    #[must_use]
    pub fn head(&self) -> &'a Parts {
        self.head
    }

    /// Returns the kept answer; `None` while the first request runs, and if its answer was not retained.
    #[must_use]
    pub fn kept(&self) -> Option<&'a KeptAnswer> {
        self.kept
    }
}

impl fmt::Debug for Duplicate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Duplicate").field("key", self.key).field("kept", &self.kept).finish_non_exhaustive()
    }
}

/// The answer of the first request, as far as it was kept.
#[derive(Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: Option<Box<HeaderMap>>,
    pub(crate) completed: Option<SystemTime>,
    pub(crate) expires: Option<SystemTime>,
    pub(crate) trace: Option<TraceContext>,
}

impl KeptAnswer {
    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the headers that were kept.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Returns the trace context of the run whose answer this is, if the layer
    /// [keeps it](crate::IdempotencyLayer::trace_context).
    #[must_use]
    pub fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// Returns the trailers that were kept.
    #[must_use]
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_deref()
    }

    /// Returns when the first request ended, by the clock of the process that ran it.
    #[must_use]
    pub fn completed_at(&self) -> Option<SystemTime> {
        self.completed
    }

    /// Returns when the answer stops being kept, by the clock of the process that ran the request; `None` if it was
    /// settled by hand.
    #[must_use]
    pub fn expires_at(&self) -> Option<SystemTime> {
        self.expires
    }

    /// Returns the kept answer as a new response, without trailers and without the mark of a replay.
    #[must_use]
    pub fn to_response(&self) -> Response<Bytes> {
        let mut response = Response::new(self.body.clone());
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers.clone();
        response
    }

    /// Returns the headers, to be changed.
    pub fn headers_mut(&mut self) -> &mut HeaderMap {
        &mut self.headers
    }

    /// Sets the status.
    pub fn set_status(&mut self, status: StatusCode) {
        self.status = status;
    }

    /// Sets the body, and removes the trailers, which describe the body before.
    pub fn set_body(&mut self, body: impl Into<Bytes>) {
        self.body = body.into();
        self.trailers = None;
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.status.is_client_error() || self.status.is_server_error()
    }
}

impl fmt::Debug for KeptAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptAnswer")
            .field("status", &self.status)
            .field("completed", &self.completed)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// What duplicates receive in place of the answer that this extension of a response belongs to.
///
/// A handler inserts it into the extensions of its response. If the policy keeps the answer, the record keeps this one,
/// and the client of the first request receives the handler's own: such as a first answer with a secret that is shown
/// once. It has no effect on an answer that is not kept, or that streams. Every layer around the handler keeps it in place
/// of the answer, and so does a failed answer that is kept with a [new token](crate::TokenLayer::rotate_on_failure): if the
/// answer for duplicates has not failed, it has the status of the first one there.
///
/// ```
/// use bytes::Bytes;
/// use http::Response;
/// use tower_idempotency::policy::ForDuplicates;
///
/// let mut created = Response::new(r#"{"id":7,"api_key":"k-29c1"}"#);
/// let for_duplicates = Response::new(Bytes::from_static(br#"{"id":7,"api_key":"shown once"}"#));
/// created.extensions_mut().insert(ForDuplicates(for_duplicates));
/// ```
#[derive(Clone, Debug)]
pub struct ForDuplicates(pub Response<Bytes>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_answer_shows_neither_headers_nor_body_and_can_be_changed() {
        let mut kept = KeptAnswer {
            status: StatusCode::CREATED,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"secret"),
            trailers: Some(Box::default()),
            completed: None,
            expires: Some(SystemTime::UNIX_EPOCH),
            trace: None,
        };
        let time = SystemTime::UNIX_EPOCH;
        assert_eq!(kept.expires_at(), Some(time));
        let shown = format!("KeptAnswer {{ status: 201, completed: None, expires: Some({time:?}), .. }}");
        assert_eq!(format!("{kept:?}"), shown);

        kept.headers_mut().insert("x-a", "1".parse().unwrap());
        kept.set_body("other");
        assert_eq!(
            (kept.headers()["x-a"].as_bytes(), &kept.body()[..], kept.trailers()),
            (&b"1"[..], &b"other"[..], None)
        );
    }
}
