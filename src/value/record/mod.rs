//! What a store holds for a key, and the arguments of its verbs.
//!
//! - `claim`: claim, issue, settlement, release. `identity`: claimant, caller, origin. `stored`: the record as
//!   operators see it.
//! - `payload`: what a record is settled with. `seal`: how encrypted parts are recognized. `trace`: the trace in which
//!   the operation began.

mod claim;
mod identity;
mod payload;
mod seal;
mod stored;
mod trace;

#[cfg(feature = "json")]
pub(crate) use self::payload::json_of;
pub(crate) use self::payload::{is_failure, is_sealed};
#[cfg(feature = "sealed")]
pub(crate) use self::seal::{SEAL_MARK, sealed_with};
pub use self::{
    claim::{Binding, Claim, Issue, Release, Settlement},
    identity::{Caller, Claimant, Origin},
    payload::Payload,
    seal::{Seal, SealingKeyId},
    stored::{Entry, Filter, Record, State},
    trace::TraceContext,
};
