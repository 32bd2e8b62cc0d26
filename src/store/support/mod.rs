//! What several stores have in common.
//!
//! - `bytes`: reading parts of a record from bytes that may be anything.
//! - `forward`: the traits for `Arc` and for wrappers, by a macro, since they have no default bodies.

pub(super) mod bytes;
mod forward;

pub(crate) use self::forward::{forward_method, forward_store};
