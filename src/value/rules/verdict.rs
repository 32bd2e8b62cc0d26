use std::time::Duration;

use crate::value::{Caller, Claim, Claimant, Origin};

/// A claim that was granted, and what a store records of it beside the claim itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// The number of claims of the key since its record began, this one included.
    pub attempt: u32,
    /// Whether the claim before it had lapsed.
    pub takeover: bool,
    /// The origin of the operation: from the first claim of the record, this one or an earlier one.
    pub origin: Origin,
    /// Whether the claim brings a caller and the record had none before.
    pub caller_is_new: bool,
}

impl Granted {
    /// Grants the first claim of a record.
    #[must_use]
    pub fn first(claim: &Claim) -> Self {
        let caller_is_new = claim.caller != Caller::NONE;
        Self { attempt: 1, takeover: false, origin: claim.origin(), caller_is_new }
    }
}

/// The verdict of [`judge`](crate::store::judge) on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// The claim is granted: write a running record with this attempt.
    Grant(Granted),
    /// This very claim was granted before, and its answer was lost on the way: nothing has to be written.
    Granted(Granted),
    /// This very claim was granted and released before: it is a late copy, and nobody waits for its grant.
    Withdrawn,
    /// Another claim runs.
    Running {
        /// The claimant of the other claim.
        holder: Claimant,
        /// The time left of its lease; more than zero.
        left: Duration,
    },
    /// The operation has ended: answer with what is kept. The value is the origin, from the record's first claim.
    Settled(Origin),
    /// The record is of another request or another caller.
    Mismatch(Mismatch),
    /// The record was made with a secret that is not at hand, so its owner cannot be determined.
    Incompatible,
    /// A claim that must not be taken over has lapsed.
    OutcomeUnknown,
    /// The record should have been issued, and is not there.
    NotIssued,
    /// The record was issued for another purpose or principal, or was not issued.
    Foreign,
}

/// The difference between a claim and the record of its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mismatch {
    /// The request asks for something else.
    Fingerprint,
    /// The request comes with other credentials.
    Caller,
}
