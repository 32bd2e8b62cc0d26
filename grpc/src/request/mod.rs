//! The body of a request: one message, in a frame of its length.
//!
//! - `frames`: the frames of a body while it is read.
//! - `encoding`: messages that are compressed.
//! - `body`: the body as the core reads it. It breaks if it is not one message.

mod body;
mod encoding;
mod frames;

use bytes::Bytes;

pub use self::body::CallBody;
pub(crate) use self::{
    encoding::{Encoding, KNOWN as KNOWN_ENCODINGS},
    frames::{FrameScan, PREFIX},
};

/// Returns the message of a body that has one.
pub(crate) fn message_of(body: &Bytes) -> Option<Bytes> {
    (body.len() >= PREFIX).then(|| body.slice(PREFIX..))
}
