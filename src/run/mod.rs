//! Functions that run once for a key: jobs, RPC handlers, steps of something larger.
//!
//! [`Once`] says where and how, and [`Once::run`] runs: a duplicate gets the value that the first one gave.

mod error;
mod future;
mod once;
mod work;

pub use self::{error::RunError, future::RunFuture, once::Once};
