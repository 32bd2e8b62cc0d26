//! What the tests of the layers know too.

#[path = "../http/common/counter.rs"]
mod counter;
#[path = "../http/common/frames.rs"]
pub mod frames;
#[path = "../http/common/seen.rs"]
mod seen;

pub use self::{
    counter::Counter,
    seen::{Seen, post, see},
};
