//! Bodies: collected within a limit, resumed after a part was read, or passed on as they arrive.

mod collect;
mod idle;
#[cfg(feature = "form")]
mod prefix;
mod request;
mod response;
mod watch;

#[cfg(feature = "form")]
pub(crate) use self::prefix::Prefix;
pub(crate) use self::{
    collect::{Collected, Excess, Failure, Patience, collect, drain, is_over_a_limit},
    idle::IdleTimeout,
    watch::Watch,
};
pub use self::{request::RequestBody, response::ResponseBody};

/// Any error.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
