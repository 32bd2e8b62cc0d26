//! What the verbs of a store return. An expected outcome is a variant here, never an error.

use std::{fmt, time::Duration};

use bytes::Bytes;

use crate::value::{Claimant, Granted, Mismatch, Origin, Record, Unseen, Verdict};

/// The outcome of [`Store::issue`](super::Store::issue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Issued {
    /// The record is issued.
    Done,
    /// A record exists under this key; it was left as it is.
    Exists,
}

/// The outcome of [`Store::claim`](super::Store::claim).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claimed {
    /// The request may run.
    Granted(Granted),
    /// Another request is running.
    Running {
        /// The claimant of the running request.
        holder: Claimant,
        /// The rest of its lease; more than zero.
        left: Duration,
    },
    /// The operation has ended: the kept answer (`None` for a tombstone), and the origin that its first claim brought.
    Settled(Option<Bytes>, Origin),
    /// The record belongs to another request or another caller.
    Mismatch(Mismatch),
    /// The record was written by a later version of this crate, or created with a secret that is not available: it is
    /// unknown whose it is and what it stands for.
    Incompatible,
    /// A claim that must not be taken over has lapsed.
    OutcomeUnknown,
    /// This same claim was granted and released before: the call is a late copy.
    Withdrawn,
    /// The record should have been issued, but does not exist.
    NotIssued,
    /// The record was issued for another purpose or principal, or was never issued.
    Foreign,
}

impl Claimed {
    /// Converts a verdict to the outcome of a claim. A [`Verdict::Grant`] has to be written already; `payload` returns
    /// the kept answer of a settled record.
    pub fn from_verdict(verdict: Verdict, payload: impl FnOnce() -> Option<Bytes>) -> Self {
        match verdict {
            Verdict::Grant(granted) | Verdict::Granted(granted) => Self::Granted(granted),
            Verdict::Running { holder, left } => Self::Running { holder, left },
            Verdict::Settled(origin) => Self::Settled(payload(), origin),
            Verdict::Mismatch(what) => Self::Mismatch(what),
            Verdict::Incompatible => Self::Incompatible,
            Verdict::OutcomeUnknown => Self::OutcomeUnknown,
            Verdict::Withdrawn => Self::Withdrawn,
            Verdict::NotIssued => Self::NotIssued,
            Verdict::Foreign => Self::Foreign,
        }
    }
}

impl fmt::Debug for Claimed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Granted(granted) => f.debug_tuple("Granted").field(granted).finish(),
            Self::Running { holder, left } => {
                f.debug_struct("Running").field("holder", holder).field("left", left).finish()
            }
            Self::Settled(payload, origin) => {
                f.debug_tuple("Settled").field(&payload.as_ref().map(Unseen)).field(origin).finish()
            }
            Self::Mismatch(mismatch) => f.debug_tuple("Mismatch").field(mismatch).finish(),
            Self::Incompatible => f.write_str("Incompatible"),
            Self::OutcomeUnknown => f.write_str("OutcomeUnknown"),
            Self::Withdrawn => f.write_str("Withdrawn"),
            Self::NotIssued => f.write_str("NotIssued"),
            Self::Foreign => f.write_str("Foreign"),
        }
    }
}

/// The outcome of [`Store::renew`](super::Store::renew).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Renewed {
    /// The claim is renewed.
    Done,
    /// The record is gone, has ended, or belongs to another claimant.
    Lost,
}

/// The outcome of [`Store::settle`](super::Store::settle) and [`Store::release`](super::Store::release).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Finished {
    /// The claim has ended as asked.
    Done,
    /// The same claimant did the same before.
    AlreadyDone,
    /// Nothing was changed: the record belongs to another claimant, has ended in another way, or does not exist.
    Refused(Option<Box<Record>>),
}
