//! What a store holds for a key, and the arguments of its verbs.
//!
//! - `claim`: claim, issue, settlement, release. `identity`: claimant, caller, origin. `stored`: the record as
//!   operators see it.
//! - `payload`: what a record is settled with. `trace`: the trace in which the operation began.

mod claim;
mod identity;
mod payload;
mod stored;
mod trace;

pub(crate) use self::payload::is_failure;
#[cfg(feature = "json")]
pub(crate) use self::payload::json_of;
pub use self::{
    claim::{Binding, Claim, Issue, Release, Settlement},
    identity::{Caller, Claimant, Origin},
    payload::Payload,
    stored::{Entry, Filter, Record, State},
    trace::TraceContext,
};
