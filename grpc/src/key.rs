//! Keys of calls: from the metadata, or from a field of the message.
//!
//! A key out of [`tower_idempotency::key`] fits too, if it needs the head alone. What reads a body there would see the
//! message behind five bytes of framing.

use bytes::Bytes;
use prost::Message;
use tower_idempotency::key::{self, KeyError, KeyExtractor};

use crate::request;

/// Takes the key from the metadata. The default is `idempotency-key`.
///
/// A key that is there twice is malformed.
///
/// # Panics
///
/// Panics if `name` is not a name of metadata, or ends in `-bin`: one and the same value in binary metadata can come in
/// several spellings.
#[track_caller]
pub fn metadata(name: &str) -> KeyExtractor {
    assert!(!name.ends_with("-bin"), "{name:?} is binary metadata, and a key is text");
    key::header(name)
}

/// Takes the key out of the message with a closure. `None` and an empty text mean that there is none.
///
/// ```
/// use tower_idempotency::MemoryStore;
/// use tower_idempotency_grpc::{GrpcLayer, key};
///
/// #[derive(Clone, PartialEq, prost::Message)]
/// struct Transfer {
///     #[prost(string, tag = "1")]
///     id: String,
/// }
///
/// let layer = GrpcLayer::new(MemoryStore::new())
///     .only(["bank.Transfers/Create"])
///     .key(key::message(|transfer: &Transfer| Some(transfer.id.clone())));
/// # drop(layer);
/// ```
///
/// The closure sees the message as tonic would decode it, decompressed. A message that cannot be decoded is refused
/// (`INVALID_ARGUMENT`, `key-invalid`). All methods behind the layer have to have this message, so name them with
/// [`only`](crate::GrpcLayer::only).
pub fn message<M: Message + Default + 'static>(
    key: impl Fn(&M) -> Option<String> + Send + Sync + 'static,
) -> KeyExtractor {
    message_bytes(move |bytes| {
        let message = M::decode(bytes.clone()).map_err(|_| KeyError::malformed("the message cannot be decoded"))?;
        Ok(key(&message))
    })
}

/// Takes the key out of the message as it was encoded, decompressed and without its framing, with a closure. `Ok(None)`
/// means that there is none.
///
/// This is for other encodings than Protocol Buffers, and for those who read one field without decoding the rest.
pub fn message_bytes(key: impl Fn(&Bytes) -> Result<Option<String>, KeyError> + Send + Sync + 'static) -> KeyExtractor {
    key::from_body(move |_, body| {
        let Some(message) = request::message_of(body) else { return Ok(None) };
        Ok(key(&message)?.filter(|key| !key.is_empty()))
    })
}
