//! Which plain commands of the server compare before they write.
//!
//! That follows from the version that the server reports (`INFO`), when the store connects and every ten seconds. Between
//! two reports another server may take its place that lacks them; its first refusal counts until the next report. Of a
//! server that reports no version nothing is expected: scripts do all that plain commands do.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

use crate::store::redis::error::CommandError;

/// The versions of Valkey that have `SET … IFEQ`, and `DELIFEQ` too.
const VALKEY_SET: (u32, u32) = (8, 1);
const VALKEY_DELETE: (u32, u32) = (9, 0);
/// The version of Redis that has both `SET … IFEQ` and `DELEX`.
const REDIS: (u32, u32) = (8, 4);

/// What the commands of a server, or of all servers of a cluster, can compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store::redis) enum Comparing {
    #[default]
    Nothing,
    /// `SET … IFEQ`.
    Set,
    /// `SET … IFEQ` and `DELIFEQ`.
    SetAndDelIfEq,
    /// `SET … IFEQ` and `DELEX … IFEQ`.
    SetAndDelEx,
}

impl Comparing {
    /// Returns what servers of these versions have. Valkey reports a version of Redis as well, which it resembles.
    pub(in crate::store::redis) fn of(redis: Option<(u32, u32)>, valkey: Option<(u32, u32)>) -> Self {
        match (valkey, redis) {
            (Some(version), _) if version >= VALKEY_DELETE => Self::SetAndDelIfEq,
            (Some(version), _) if version >= VALKEY_SET => Self::Set,
            (None, Some(version)) if version >= REDIS => Self::SetAndDelEx,
            _ => Self::Nothing,
        }
    }

    /// Returns what both this server and another one have.
    pub(in crate::store::redis) fn and(self, other: Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one,
            (Self::Nothing, _) | (_, Self::Nothing) => Self::Nothing,
            _ => Self::Set,
        }
    }
}

/// A command that removes a record if it is the one that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delete {
    /// `DELIFEQ name record`
    DelIfEq,
    /// `DELEX name IFEQ record`
    DelEx,
}

/// What the server has, as far as it is known.
#[derive(Default)]
pub(in crate::store::redis) struct Abilities {
    /// A `Comparing`.
    comparing: AtomicU8,
    /// The user must not remove records by these commands: no report changes that.
    may_not_delete: AtomicBool,
}

impl Abilities {
    pub(in crate::store::redis) fn new(comparing: Comparing) -> Self {
        let abilities = Self::default();
        abilities.set(comparing);
        abilities
    }

    /// Takes note of a report.
    pub(in crate::store::redis) fn set(&self, comparing: Comparing) {
        self.comparing.store(comparing as u8, Relaxed);
    }

    /// Takes note that a command was refused: by a server that does not have it, or to a user who must not use it.
    pub(super) fn refuse(&self, is_removal: bool, error: &CommandError) {
        if is_removal && error.is_forbidden() {
            self.may_not_delete.store(true, Relaxed);
        } else {
            self.set(if is_removal { Comparing::Set } else { Comparing::Nothing });
        }
    }

    /// Returns whether the server has `SET … IFEQ`.
    pub(super) fn compares(&self) -> bool {
        self.comparing.load(Relaxed) != Comparing::Nothing as u8
    }

    /// Returns the command that removes a record, if there is one.
    pub(super) fn delete(&self) -> Option<Delete> {
        const DEL_IF_EQ: u8 = Comparing::SetAndDelIfEq as u8;
        const DEL_EX: u8 = Comparing::SetAndDelEx as u8;

        match self.comparing.load(Relaxed) {
            _ if self.may_not_delete.load(Relaxed) => None,
            DEL_IF_EQ => Some(Delete::DelIfEq),
            DEL_EX => Some(Delete::DelEx),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_known_by_what_they_have() {
        for (redis, valkey, comparing) in [
            ((7, 0), None, Comparing::Nothing),
            ((8, 2), None, Comparing::Nothing),
            ((8, 4), None, Comparing::SetAndDelEx),
            ((10, 0), None, Comparing::SetAndDelEx),
            ((7, 2), Some((8, 0)), Comparing::Nothing),
            ((7, 2), Some((8, 1)), Comparing::Set),
            ((7, 2), Some((9, 0)), Comparing::SetAndDelIfEq),
        ] {
            assert_eq!(Comparing::of(Some(redis), valkey), comparing, "{redis:?}, {valkey:?}");
        }
        assert_eq!(Comparing::of(None, None), Comparing::Nothing);
    }

    #[test]
    fn servers_have_together_what_each_of_them_has() {
        use Comparing::{Nothing, Set, SetAndDelEx, SetAndDelIfEq};
        for (one, other, both) in [
            (Nothing, SetAndDelEx, Nothing),
            (Set, SetAndDelIfEq, Set),
            (SetAndDelEx, SetAndDelIfEq, Set),
            (SetAndDelEx, SetAndDelEx, SetAndDelEx),
        ] {
            assert_eq!((one.and(other), other.and(one)), (both, both), "{one:?}, {other:?}");
        }
    }
}
