//! Bodies: collected within a limit, resumed after a part was read, or passed on as they arrive.
//!
//! - `collect`: reads a body to its end, within limits of bytes and time, and says why it stopped.
//! - `held`: a response body while it is read.
//! - `request`, `response`: the body types of the layer: whole, passed on, resumed after a part was read, or broken.
//! - `prefix`: reads as much of a body as a token needs, and puts it back. `idle`: the limit for a body that stands
//!   still.
//! - `buffered`: a request body whose beginning was read for the message log.
//! - `watch`: notes that a streaming request broke while the handler read it, so that its run is not recorded as a
//!   success.

#[cfg(feature = "_sql")]
mod buffered;
mod collect;
mod held;
mod idle;
#[cfg(feature = "form")]
mod prefix;
mod request;
mod response;
mod watch;

#[cfg(feature = "_sql")]
pub use self::buffered::BufferedBody;
#[cfg(feature = "form")]
pub(crate) use self::prefix::Prefix;
pub(crate) use self::{
    collect::{CollectError, Collected, Collector, Drain, Excess, Patience, collect, is_over_a_limit},
    held::HeldBody,
    idle::IdleTimeout,
    watch::{BrokenFlag, Watch},
};
pub use self::{request::RequestBody, response::ResponseBody};

/// Any error.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
