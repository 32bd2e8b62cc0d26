#[cfg(feature = "_sql")]
use crate::value::Record;
use crate::value::{Claimant, State};

/// The part of a record that decides who may renew or end its claim.
#[derive(Clone, Copy)]
pub(crate) struct Hold {
    pub(crate) state: State,
    /// The last claimant.
    pub(crate) claimant: Claimant,
    /// Whether the lease has lapsed, if the record is running.
    pub(crate) lapsed: bool,
}

/// On whose behalf a claim is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behalf {
    /// The claimant's own.
    Own,
    /// That of the runner that an operator has seen, and whose lease must have lapsed.
    Of(Claimant),
}

#[cfg(feature = "_sql")]
impl From<&Record> for Hold {
    fn from(record: &Record) -> Self {
        Self { state: record.state, claimant: record.claimant, lapsed: record.lease_left.is_zero() }
    }
}

impl Behalf {
    /// Returns the claimant that the record must name, if `by` ends the claim.
    #[cfg(any(feature = "redis", feature = "_sql"))]
    pub(crate) fn runner(self, by: Claimant) -> Claimant {
        match self {
            Self::Own => by,
            Self::Of(runner) => runner,
        }
    }
}

/// What follows from an attempt to end a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The claim ends: write the new record.
    Write,
    /// The same claimant did the same before.
    AlreadyDone,
    /// Another claimant holds the record, or the claim has ended in another way.
    Refused,
}

impl Hold {
    /// Returns whether the claim of `claimant` is running, alive or lapsed. Then it may be renewed and ended: a
    /// claimant is late only once another one has taken over.
    #[inline]
    pub(crate) fn runs_under(self, claimant: Claimant) -> bool {
        self.state == State::Running && self.claimant == claimant
    }

    /// Returns whether `by` may settle the claim.
    #[inline]
    pub(crate) fn settle(self, by: Claimant, behalf: Behalf) -> Ending {
        self.end(by, behalf, self.state == State::Settled)
    }

    /// Returns whether `by` may release or undo the claim.
    #[inline]
    pub(crate) fn release(self, by: Claimant, behalf: Behalf) -> Ending {
        // A released token is issued again, and still names the claimant that released it. Nobody has claimed the one
        // that names no claimant.
        let released = matches!(self.state, State::Issued | State::Released) && by != Claimant::NONE;
        self.end(by, behalf, released)
    }

    #[inline]
    fn end(self, by: Claimant, behalf: Behalf, has_ended_so: bool) -> Ending {
        let may_end = match behalf {
            Behalf::Own => self.runs_under(by),
            Behalf::Of(runner) => self.runs_under(runner) && self.lapsed,
        };
        if may_end {
            return Ending::Write;
        }
        // If an operator uses the claimant that it saw, the runner may have ended the claim by itself.
        let own_doing = behalf != Behalf::Of(by);
        if has_ended_so && own_doing && self.claimant == by { Ending::AlreadyDone } else { Ending::Refused }
    }
}
