//! A step of the application's before the claim: is this request from whom it says it is?
//!
//! It runs after the whole body is there and before the key is derived from it, so that a forged request neither claims
//! an identifier nor learns whether it was used. A layer that is disabled still verifies; what `exceptions` leave out
//! is not verified.

use std::{future::Future, pin::Pin};

use bytes::Bytes;
use http::{Response, request::Parts};

use crate::value::Refusal;

/// The application's check of a request's head and whole body. `Err` is the response for a request that fails it.
pub(crate) type Verify = dyn Fn(Parts, Bytes) -> Verifying + Send + Sync;

/// The future of the application's check.
type Verifying = Pin<Box<dyn Future<Output = Result<(), Response<Bytes>>> + Send>>;

/// Why a request is answered before its claim.
pub(crate) enum Stop {
    /// The layer refuses it.
    Refused(Refusal),
    /// The application refuses it, with its own response.
    Unverified(Box<Response<Bytes>>),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}
