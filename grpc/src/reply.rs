//! Answers of the application's own: for duplicates, and for operations that it settles itself.
//!
//! ```
//! use tonic::Status;
//! use tower_idempotency::{OnDuplicate, policy::Reply, reconcile::Payload};
//! use tower_idempotency_grpc::reply;
//!
//! #[derive(Clone, PartialEq, prost::Message)]
//! struct Receipt {
//!     #[prost(bool, tag = "1")]
//!     known: bool,
//! }
//!
//! // Duplicates are told that the call was made before.
//! let known = Reply::from_fn(|_| reply::message(&Receipt { known: true }));
//! let on_duplicate = OnDuplicate::Respond(known);
//! // A reconciler that has found out how an operation ended.
//! let ended = Payload::response(&reply::status(&Status::failed_precondition("the account is closed")));
//! # drop((on_duplicate, ended));
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, Response, header::CONTENT_TYPE};
use prost::Message;
use tonic::{Code, Status};

use crate::{
    codes::{GRPC_STATUS, counts_as},
    request::PREFIX,
};

/// Returns a message as a successful answer.
pub fn message<M: Message>(message: &M) -> Response<Bytes> {
    let mut framed = BytesMut::with_capacity(PREFIX + message.encoded_len());
    framed.put_u8(0);
    // Four bytes for the length: a longer message cannot be sent by gRPC at all.
    framed.put_u32(u32::try_from(message.encoded_len()).unwrap_or(u32::MAX));
    framed.put_slice(&message.encode_to_vec());
    let mut response = Response::new(framed.freeze());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    // The service moves it to the trailers.
    headers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    response
}

/// Returns a status as an answer without a message. [`Code::Ok`] is not for it: a successful answer has a message.
pub fn status(status: &Status) -> Response<Bytes> {
    let mut response = status.clone().into_http::<Bytes>();
    *response.status_mut() = counts_as(status.code());
    debug_assert_ne!(status.code(), Code::Ok, "a successful answer has a message");
    response
}
