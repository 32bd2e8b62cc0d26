//! The name of a record, and the digests that it is made of.
//!
//! - `record_key`: route, scope and key, with their lengths in front, so that no two names have the same bytes.
//! - `digest`, `compact`: SHA-256 over parts of known length. `secret`: the same as an HMAC, and the replacement of a
//!   secret. `secret_number`: which secret the values of a record were made with.
//! - `child`: keys for the steps of an operation, derived from its first claim.

mod child;
mod compact;
mod digest;
mod record_key;
mod secret;
mod secret_number;

pub(crate) use self::{
    child::child_key,
    compact::CompactDigest,
    digest::{Digest, hex, labelled_digest},
    record_key::{check_key, check_name, is_blank},
};
pub use self::{
    record_key::RecordKey,
    secret::{Secret, SecretTooShort},
    secret_number::SecretNumber,
};
