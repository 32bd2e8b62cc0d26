use std::{fmt, time::Duration};

use bytes::Bytes;

use crate::value::{Claimant, Granted, Mismatch, Origin, Record, Unseen, Verdict};

/// The outcome of [`Store::issue`](super::Store::issue).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Issued {
    /// It is issued.
    Done,
    /// A record is there under this key; it was left as it is.
    Exists,
}

/// The outcome of [`Store::claim`](super::Store::claim).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Claimed {
    /// The request may run.
    Granted(Granted),
    /// Another request runs.
    Running {
        /// Whose claim it is.
        holder: Claimant,
        /// What is left of its lease; more than zero.
        left: Duration,
    },
    /// The operation has ended: what was kept of its answer, `None` for a tombstone, and what its first claim brought.
    Settled(Option<Bytes>, Origin),
    /// The record is of another request or another caller.
    Mismatch(Mismatch),
    /// The record was written by a later version of this crate, or made with a secret that is not at hand: nobody can tell
    /// whose it is and what it stands for.
    Incompatible,
    /// A claim that must not be taken over has lapsed.
    OutcomeUnknown,
    /// This very claim was granted and released before: it is a late copy.
    Withdrawn,
    /// The record should have been issued, and is not there.
    NotIssued,
    /// The record was issued for another purpose or principal, or is none that was issued.
    Foreign,
}

impl Claimed {
    /// Makes the outcome of a verdict. A [`Verdict::Grant`] has been written by then; `payload` gives the kept answer of a
    /// settled record.
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
    /// The claim is prolonged.
    Done,
    /// The record is gone, ended, or another's.
    Lost,
}

/// The outcome of [`Store::settle`](super::Store::settle) and [`Store::release`](super::Store::release).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Finished {
    /// It is done.
    Done,
    /// The same claimant did the same before.
    AlreadyDone,
    /// Nothing was changed: the record that is there is another's, or ended otherwise, or there is none.
    Refused(Option<Box<Record>>),
}
