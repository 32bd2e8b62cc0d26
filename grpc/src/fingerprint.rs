//! What counts as the same call.
//!
//! By default the bytes of the message do, decompressed. A client that retries by its retry policy sends the same bytes.
//! One that encodes its message anew may not, if the message has a `map`: an encoder may write its entries in any order.
//! Such a client receives `FAILED_PRECONDITION`, never a wrong answer. For it, compare what matters with [`message`].

use prost::Message;
use tower_idempotency::fingerprint::{self, Fingerprint, FingerprintExtractor};

use crate::request;

/// Compares what a closure makes of the message.
///
/// ```
/// use tower_idempotency::MemoryStore;
/// use tower_idempotency_grpc::{GrpcLayer, fingerprint};
///
/// #[derive(Clone, PartialEq, prost::Message)]
/// struct Transfer {
///     #[prost(string, tag = "1")]
///     to: String,
///     #[prost(uint64, tag = "2")]
///     amount: u64,
///     /// Another one on each try.
///     #[prost(uint64, tag = "3")]
///     sent_at: u64,
/// }
///
/// let layer = GrpcLayer::new(MemoryStore::new())
///     .only(["bank.Transfers/Create"])
///     .fingerprint(fingerprint::message(|transfer: &Transfer| format!("{} {}", transfer.amount, transfer.to)));
/// # drop(layer);
/// ```
///
/// The method is always compared. A message that cannot be decoded is compared by its bytes.
pub fn message<M: Message + Default + 'static, V: AsRef<[u8]>>(
    of: impl Fn(&M) -> V + Send + Sync + 'static,
) -> FingerprintExtractor {
    fingerprint::from_fn(move |parts, body| {
        let head = Fingerprint::builder().part(parts.uri.path());
        match request::message_of(body).and_then(|message| M::decode(message).ok()) {
            Some(message) => head.part("message").part(of(&message)).build(),
            None => head.part("bytes").part(body).build(),
        }
    })
}
