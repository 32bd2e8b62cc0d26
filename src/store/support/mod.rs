//! What several stores have in common.

pub(super) mod bytes;
mod forward;

pub(crate) use self::forward::{forward_method, forward_store};
