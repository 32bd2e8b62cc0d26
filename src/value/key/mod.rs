//! The name of a record, and the digests that it is made of.

mod child;
mod compact;
mod digest;
mod record_key;
mod secret;

pub(crate) use self::{
    child::child_key,
    compact::CompactDigest,
    digest::{Digest, hex, labelled_digest},
    record_key::{check_key, check_name, is_blank},
};
pub use self::{
    record_key::RecordKey,
    secret::{Secret, SecretNumber, SecretTooShort},
};
