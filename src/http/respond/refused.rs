//! The argument of the closure that renders refusals.
//!
//! It borrows from the request and cannot be kept. `document` is the layer's own response, so that a renderer may
//! handle some refusals and leave the rest as they are.

use std::fmt;

use bytes::Bytes;
use http::{Response, request::Parts};

use crate::{
    problem::{self, Problem},
    value::{RecordKey, Refusal},
};

/// A request that is refused, for the closure of [`render`](crate::IdempotencyLayer::render).
#[derive(Clone, Copy)]
pub struct RefusedRequest<'a> {
    pub(crate) problem: &'a Problem<'a>,
    pub(crate) head: &'a Parts,
    pub(crate) key: Option<&'a RecordKey>,
}

impl<'a> RefusedRequest<'a> {
    /// Returns why the request is refused.
    #[must_use]
    pub fn refusal(&self) -> &'a Refusal {
        self.problem.refusal
    }

    /// Returns the head of the request.
    #[must_use]
    pub fn head(&self) -> &'a Parts {
        self.head
    }

    /// Returns the operation; `None` if the request was refused before it had a valid key.
    #[must_use]
    pub fn key(&self) -> Option<&'a RecordKey> {
        self.key
    }

    /// Returns what the client can do about it, with the place where a missing or malformed key, token or scope
    /// belongs: the problem's `detail`.
    #[must_use]
    pub fn detail(&self) -> String {
        problem::detail(self.refusal(), self.problem.place.as_deref())
    }

    /// Returns the problem document that the layer would send itself (RFC 9457).
    #[must_use]
    pub fn document(&self) -> Response<Bytes> {
        self.problem.render()
    }
}

impl fmt::Debug for RefusedRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedRequest")
            .field("refusal", self.refusal())
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
