use std::fmt;

use bytes::Bytes;

use super::seal::sealed_with;
#[cfg(feature = "json")]
use crate::value::finite::is_finite;

/// The outcome of an operation, as a settled record keeps it for duplicates.
///
/// Code behind one of the crate's layers, or in `Once`, needs none: its outcome is packed for it. A payload is for code
/// that settles in a runner's place, with [`StoreAdmin::settle_as`](crate::store::StoreAdmin::settle_as) or a
/// [`Reconciler`](crate::Reconciler). It has to be of the kind that fits the operation:
///
/// | operation | payload | its duplicate |
/// | --- | --- | --- |
/// | HTTP request | [`response`](Self::response) | receives this answer, marked as a replay |
/// | HTTP request | [`failed`](Self::failed) | receives a 500 `handler-failed` |
/// | message | [`done`](Self::done) | is acknowledged |
/// | message | [`failed`](Self::failed) | is dead-lettered |
/// | function | [`value`][value] | receives this value |
/// | function | [`failed`](Self::failed) | receives `handler-failed` |
/// | any | [`tombstone`](Self::tombstone) | an HTTP request or a function receives `response-not-retained`; a message is acknowledged |
///
/// ```
/// use std::time::Duration;
///
/// use bytes::Bytes;
/// use http::{Response, StatusCode};
/// use tower_idempotency::{reconcile::Payload, store::{Claimant, Settlement}};
///
/// let mut paid = Response::new(Bytes::from_static(b"payment 7"));
/// *paid.status_mut() = StatusCode::CREATED;
/// let day = Duration::from_secs(24 * 60 * 60);
/// let settlement = Settlement::new(Claimant::random(), Payload::response(&paid).into(), day);
/// assert!(settlement.payload.is_some());
/// ```
///
#[cfg_attr(feature = "json", doc = "[value]: Self::value")]
#[cfg_attr(
    not(feature = "json"),
    doc = "[value]: https://docs.rs/tower-idempotency/latest/tower_idempotency/reconcile/struct.Payload.html#method.value"
)]
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a payload does nothing until a record is settled with it"]
pub struct Payload(Option<Bytes>);

/// No version of an HTTP answer's packing begins with it.
const OF_NO_REQUEST: u8 = 0x81;
const DONE: &[u8] = &[OF_NO_REQUEST, 0];
const FAILED: &[u8] = &[OF_NO_REQUEST, 1];
#[cfg(feature = "json")]
const VALUE: &[u8] = &[OF_NO_REQUEST, 2];

impl Payload {
    /// Creates a tombstone: the operation ran, and there is nothing to answer with.
    pub const fn tombstone() -> Self {
        Self(None)
    }

    /// Creates the payload of a message that was handled.
    pub const fn done() -> Self {
        Self(Some(Bytes::from_static(DONE)))
    }

    /// Creates the payload of an operation that ran and failed, and must not run again.
    pub const fn failed() -> Self {
        Self(Some(Bytes::from_static(FAILED)))
    }

    /// Creates the payload of a function's value.
    ///
    /// # Errors
    ///
    /// Returns an error if `value` cannot be written as JSON without a loss: a number in it that is not finite would be
    /// read back as `null`.
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    pub fn value<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        let mut bytes = VALUE.to_vec();
        serde_json::to_writer(&mut bytes, value)?;
        if !is_finite(value) {
            return Err(serde::ser::Error::custom("a number in it is not finite"));
        }
        Ok(Self(Some(bytes.into())))
    }

    /// Wraps bytes that are packed already.
    pub(crate) const fn packed(bytes: Bytes) -> Self {
        Self(Some(bytes))
    }

    /// Returns the bytes that a store keeps; `None` for a tombstone.
    #[must_use]
    pub fn into_bytes(self) -> Option<Bytes> {
        self.0
    }
}

impl From<Payload> for Option<Bytes> {
    fn from(payload: Payload) -> Self {
        payload.into_bytes()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(bytes) => write!(f, "Payload({} bytes)", bytes.len()),
            None => f.write_str("Payload(tombstone)"),
        }
    }
}

/// Returns whether a kept payload states that the operation ran and failed.
pub(crate) fn is_failure(payload: Option<&Bytes>) -> bool {
    payload.is_some_and(|bytes| bytes == FAILED)
}

/// Returns whether a kept payload is sealed: the operation has ended, and nobody here can read how.
pub(crate) fn is_sealed(payload: Option<&Bytes>) -> bool {
    payload.is_some_and(|bytes| sealed_with(bytes).is_some())
}

/// Returns the JSON of a function's value, if that is what was kept.
#[cfg(feature = "json")]
pub(crate) fn json_of(payload: &[u8]) -> Option<&[u8]> {
    payload.strip_prefix(VALUE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_apart() {
        assert!(is_failure(Payload::failed().into_bytes().as_ref()));
        for other in [Payload::tombstone(), Payload::done()] {
            assert!(!is_failure(other.into_bytes().as_ref()));
        }
    }

    #[cfg(feature = "json")]
    #[test]
    fn a_value_is_its_json() {
        let kept = Payload::value(&("order", 7)).unwrap().into_bytes().unwrap();
        assert_eq!(json_of(&kept), Some(&br#"["order",7]"#[..]));
        assert_eq!(json_of(DONE), None);
        assert!(!is_failure(Some(&kept)));
    }

    /// JSON would contain `null`, and a duplicate would receive no number.
    #[cfg(feature = "json")]
    #[test]
    fn a_number_that_is_not_finite_is_no_value() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(Payload::value(&("order", Some(number))).is_err());
        }
        assert!(Payload::value(&("order", Some(f64::MAX))).is_ok());
    }

    #[test]
    fn debug_shows_no_content() {
        assert_eq!(format!("{:?}", Payload::done()), "Payload(2 bytes)");
    }
}
