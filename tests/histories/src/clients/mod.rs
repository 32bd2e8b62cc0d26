//! Clients: each asks for an operation until it has an answer that is final, with the same key and the same body.
//!
//! - `http`: one request
//! - `load`: which operations there are, and who asks for them

pub(crate) mod http;
mod load;

pub(crate) use self::load::{Load, ask_once_more, drive, is_final};
