//! Functions that run once for a key: jobs, RPC handlers, steps of a larger process.
//!
//! [`Once`] has the settings, and [`Once::run`] runs a function: a duplicate receives the value of the first run.

mod error;
mod future;
mod once;
mod work;

pub use self::{error::RunError, future::RunFuture, once::Once};
