//! What the store holds of an answer: which headers, in which encoding, and what a first answer says of its record.
//!
//! - `headers`: which headers are kept. Hop-by-hop fields, and fields of one client (cookies, challenges, CORS), never
//!   are.
//! - `codec`: the layout of a kept answer as bytes. It is versioned; a payload of an unknown version is not replayed.
//! - `remembered`: the headers of the last answers, so that they are not read anew for each replay.
//! - `payload`: the same for an answer that a reconciler supplies.
//! - `response_kind`: what kind of response it is: one that can be kept, or one that is passed on.
//! - `kept_failure`: a failed answer that brings a new token.
//! - `recorded`: headers that a first answer gets only after its record is settled.
//!
//! The store sees opaque bytes. Only this folder knows their layout.

pub(super) mod codec;
mod headers;
pub(super) mod kept_failure;
mod payload;
mod recorded;
mod remembered;
pub(super) mod response_kind;

pub(crate) use self::headers::HeaderPolicy;
pub(super) use self::recorded::OfRecord;
