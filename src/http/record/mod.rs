//! What the store holds of an answer: which headers, in which encoding, and what a first answer says of its record.

pub(super) mod codec;
mod headers;
mod payload;
pub(super) mod recorded;

pub(crate) use self::headers::HeaderPolicy;
