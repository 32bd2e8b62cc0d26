//! Functions that run once for a key: jobs, RPC handlers, steps of a larger process.
//!
//! [`Once`](crate::Once) has the settings, and [`Once::run`](crate::Once::run) runs a function: a duplicate receives the value of the first run.

// For maintainers, in reading order: `once` has the settings and the call, `work` runs the function through
// `engine::execute` and keeps its value, `error` maps what happens otherwise, `future` is the response future. Nothing
// is locked.

mod error;
mod future;
pub(crate) mod once;
mod setters;
mod work;

pub use self::{error::RunError, future::RunFuture};
