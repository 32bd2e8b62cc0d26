//! Ending a claim by one plain command that compares, where the server has such: `SET … IFEQ`, `DELIFEQ`, `DELEX … IFEQ`.
//!
//! A script costs the server several times what a plain command does. A claim of a free key knows each byte of the record
//! that it wrote (`own_claims`). So it can say: if the record is still this one, replace it by that one. Whatever has
//! happened to the record meanwhile (a renewal, the mark of a waiter, a takeover, an operator's settlement) has changed its
//! bytes. Then the command does nothing, and the script of the verb decides, as it does for every other claim and on a
//! server without these commands (`abilities`).
//!
//! What the command writes is what the script would write, with one difference: the server's clock is not known, so the
//! record says how long before its last change it was created, as this process has measured it.
//!
//! | the server answers | then |
//! | --- | --- |
//! | that it is done | nobody can be waiting for a message: a waiter would have changed the record |
//! | that the record is another one, or none | the script decides: it recognises a repetition |
//! | that it takes no writes | the script decides: it answers from the record if it can |
//! | that it does not know the command, or does not permit it | the script, and no such command is sent from then on |
//! | any other error, or nothing | that is the error of the verb; its next try runs the script |

mod abilities;
mod own_claims;

use std::time::Instant;

use redis::{Cmd, Value};

use crate::value::{Claimant, RecordKey, Release, Settlement, State};

use self::abilities::Delete;
use super::{
    RedisStore,
    command::{Argument, command},
    connection::RetryOnDisconnect,
    error::CommandError,
    record::{PAYLOAD, ended, millis, times},
};

pub(super) use self::{
    abilities::{Abilities, Comparing},
    own_claims::{OwnClaim, OwnClaims},
};

/// A longer record is not kept in memory to compare with it, nor sent a second time for that.
const LARGEST_CLAIM: usize = 1 << 10;

/// Longer answers go by a draft, which asks the server first whether it takes so large a value.
const LARGEST_ANSWER: usize = (1 << 20) - (1 << 12);

/// What a plain command has led to.
pub(super) enum Compared {
    /// The record was still the one that the claim wrote, and is replaced or removed.
    Done,
    /// The script has to decide.
    Undecided,
    /// The script has to decide, and the command may have taken effect all the same: its connection broke, and a server
    /// that refuses it was asked the second time.
    MaybeDone,
}

impl RedisStore {
    /// Remembers a claim that was granted by this command, `SET name record …`.
    pub(super) fn remember_claim(&self, claimant: Claimant, claim: Cmd, began: Instant) {
        let own = OwnClaim::new(claimant, claim, began);
        if self.shared.abilities.compares() && own.record().len() <= LARGEST_CLAIM {
            self.shared.own_claims.insert(own);
        }
    }

    /// Settles a claim of this process, if its record is as the claim wrote it.
    pub(super) async fn settle_compared(
        &self,
        key: &RecordKey,
        settlement: &Settlement,
    ) -> Result<Compared, CommandError> {
        let Some(own) = self.own_claim(key, settlement.claimant) else { return Ok(Compared::Undecided) };
        let payload = settlement.payload.as_deref().unwrap_or_default();
        let Some(length) = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= LARGEST_ANSWER) else {
            return Ok(Compared::Undecided);
        };
        let span = millis(settlement.retention);
        let flag = if settlement.payload.is_some() { PAYLOAD } else { 0 };
        let head = ended(own.record(), State::Settled, flag, own.age(), times(0, span, length));
        self.replace(&own, &[&head, payload, own.rest()], span).await
    }

    /// Releases a claim of this process, or takes it back, if its record is as the claim wrote it.
    ///
    /// It is the first claim of its record, so nothing is left of it if it is taken back.
    pub(super) async fn release_compared(&self, key: &RecordKey, release: &Release) -> Result<Compared, CommandError> {
        let Some(own) = self.own_claim(key, release.claimant) else { return Ok(Compared::Undecided) };
        let span = if release.undo { 0 } else { millis(release.keep) };
        let head = ended(own.record(), State::Released, 0, own.age(), times(own.lease(), span, 0));
        self.replace(&own, &[&head, own.rest()], span).await
    }

    /// Returns what the claimant's claim wrote, if this process knows it and the server compares.
    fn own_claim(&self, key: &RecordKey, claimant: Claimant) -> Option<OwnClaim> {
        let own = self.shared.own_claims.take(claimant, &self.prefix.parts(key))?;
        self.shared.abilities.compares().then_some(own)
    }

    /// Replaces the record of the claim by another one, or removes it if that would not live.
    async fn replace(&self, own: &OwnClaim, record: &[&[u8]], span: u64) -> Result<Compared, CommandError> {
        let (name, old) = (Argument::Bytes(own.name()), Argument::Bytes(own.record()));
        let [set, if_equal, expiry] = [&b"SET"[..], b"IFEQ", b"PX"].map(Argument::Bytes);
        let command = match self.shared.abilities.delete() {
            _ if span > 0 => command(
                [set, name, Argument::Joined(record), if_equal, old, expiry, Argument::Number(span)].into_iter(),
            ),
            Some(Delete::DelIfEq) => command([Argument::Bytes(b"DELIFEQ"), name, old].into_iter()),
            Some(Delete::DelEx) => command([Argument::Bytes(b"DELEX"), name, if_equal, old].into_iter()),
            None => return Ok(Compared::Undecided),
        };
        match self.transport().command(&command, RetryOnDisconnect::Yes).await {
            Ok(Value::Okay | Value::Int(1)) => Ok(Compared::Done),
            Ok(Value::Nil | Value::Int(0)) => Ok(Compared::Undecided),
            Ok(_) => Err(CommandError::UnexpectedReply),
            Err(error) => {
                let refused = error.is_unknown_command() || error.is_forbidden();
                if refused {
                    self.shared.abilities.refuse(span == 0, &error);
                } else if !error.refuses_writes() {
                    return Err(error);
                }
                let maybe_done = matches!(error, CommandError::FailedAgain(_));
                Ok(if maybe_done { Compared::MaybeDone } else { Compared::Undecided })
            }
        }
    }
}
