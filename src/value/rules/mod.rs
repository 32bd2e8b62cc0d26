//! The rules of a record's life, as pure functions. A store reads a record, asks here what follows, and writes it.
//!
//! - [`judge`]: whether a claim may run, by the [`RecordHead`] of the record that exists.
//! - [`Hold`]: whether a claim may be renewed, settled or released, by its claimant or on its behalf.
//! - [`released`] and [`undone`]: what a claim leaves that ends without an answer.
//! - [`StoredRecord`]: a whole record, to which all of them are applied.

mod head;
mod hold;
mod judge;
mod release;
mod stored;
#[cfg(test)]
mod tests;
mod verdict;

#[cfg(feature = "memory")]
pub(crate) use self::release::Undone;
pub use self::{
    head::RecordHead,
    judge::judge,
    stored::StoredRecord,
    verdict::{Granted, Mismatch, Verdict},
};
pub(crate) use self::{
    hold::{Behalf, Ending, Hold},
    release::{released, undone},
};
