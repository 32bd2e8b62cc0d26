//! The records that this process wrote by claiming a free key, until it ends their claims.
//!
//! Nothing depends on a claim being found here: without it the script settles. So the number is bounded, and the oldest
//! claims make room, such as those of runs that were abandoned.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use redis::{Arg, Cmd};

use crate::{
    store::redis::record::{self, HEAD},
    value::{self, Claimant},
};

/// The number of parts, each with a lock of its own, and how many claims each of them keeps.
const SHARDS: usize = 64;
const KEPT: usize = 64;

/// The places of the name and of the record in the command that claimed.
const NAME: usize = 1;
const RECORD: usize = 2;

/// A claim of a free key, with the command that it was granted by: `SET name record …`.
pub(in crate::store::redis) struct OwnClaim {
    claimant: Claimant,
    claim: Cmd,
    /// When the command was sent.
    began: Instant,
}

impl OwnClaim {
    pub(super) fn new(claimant: Claimant, claim: Cmd, began: Instant) -> Self {
        Self { claimant, claim, began }
    }

    /// Returns the name of the record.
    pub(super) fn name(&self) -> &[u8] {
        self.argument(NAME)
    }

    /// Returns the record.
    pub(super) fn record(&self) -> &[u8] {
        self.argument(RECORD)
    }

    /// Returns what stands behind the head, which stays as it is.
    pub(super) fn rest(&self) -> &[u8] {
        self.record().get(HEAD..).unwrap_or_default()
    }

    /// Returns the lease in milliseconds.
    pub(super) fn lease(&self) -> u64 {
        record::lease(self.record())
    }

    /// Returns how long ago it was claimed, in milliseconds.
    pub(super) fn age(&self) -> u64 {
        value::millis(self.began.elapsed())
    }

    fn argument(&self, at: usize) -> &[u8] {
        match self.claim.args_iter().nth(at) {
            Some(Arg::Simple(argument)) => argument,
            _ => &[],
        }
    }
}

/// The claims of this process that still run.
pub(in crate::store::redis) struct OwnClaims([Mutex<VecDeque<OwnClaim>>; SHARDS]);

impl Default for OwnClaims {
    fn default() -> Self {
        Self([const { Mutex::new(VecDeque::new()) }; SHARDS])
    }
}

impl OwnClaims {
    /// Adds a claim.
    pub(super) fn insert(&self, claim: OwnClaim) {
        let mut claims = self.shard(claim.claimant);
        if claims.len() == KEPT {
            claims.pop_front();
        }
        claims.push_back(claim);
    }

    /// Removes the claimant's claim of this name, and returns it.
    pub(super) fn take(&self, claimant: Claimant, name: &[&[u8]; 2]) -> Option<OwnClaim> {
        let mut claims = self.shard(claimant);
        let at = claims.iter().rposition(|claim| claim.claimant == claimant && is_name(claim.name(), name))?;
        claims.remove(at)
    }

    /// Removes all claims of a claimant: what they wrote is no longer what the server has.
    pub(in crate::store::redis) fn forget(&self, claimant: Claimant) {
        self.shard(claimant).retain(|claim| claim.claimant != claimant);
    }

    fn shard(&self, claimant: Claimant) -> MutexGuard<'_, VecDeque<OwnClaim>> {
        let [.., last] = claimant.to_bytes();
        self.0[usize::from(last) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a name consists of these two parts.
fn is_name(name: &[u8], [prefix, key]: &[&[u8]; 2]) -> bool {
    name.strip_prefix(*prefix) == Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: [&[u8]; 2] = [b"idem{}:", b"a"];

    fn own(claimant: Claimant) -> OwnClaim {
        let mut claim = redis::cmd("SET");
        claim.arg("idem{}:a").arg("record").arg("NX");
        OwnClaim::new(claimant, claim, Instant::now())
    }

    fn in_one_shard(number: u8) -> Claimant {
        Claimant::from_bytes([number; 15].into_iter().chain([1]).collect::<Vec<_>>().try_into().unwrap())
    }

    #[test]
    fn a_claim_is_found_once_by_its_claimant_and_name() {
        let (claims, claimant) = (OwnClaims::default(), Claimant::random());
        claims.insert(own(claimant));
        assert!(claims.take(Claimant::random(), &NAME).is_none());
        assert!(claims.take(claimant, &[b"idem{}:", b"b"]).is_none());
        assert!(claims.take(claimant, &[b"idem{}:4:shop:", b"a"]).is_none());
        let found = claims.take(claimant, &NAME).unwrap();
        assert_eq!((found.name(), found.record()), (&b"idem{}:a"[..], &b"record"[..]));
        assert!(claims.take(claimant, &NAME).is_none());
    }

    #[test]
    fn what_has_changed_is_forgotten() {
        let (claims, claimant) = (OwnClaims::default(), Claimant::random());
        claims.insert(own(claimant));
        claims.forget(claimant);
        assert!(claims.take(claimant, &NAME).is_none());
    }

    #[test]
    fn the_oldest_claims_make_room() {
        let claims = OwnClaims::default();
        let claimants: Vec<_> = (0..=64).map(in_one_shard).collect();
        for &claimant in &claimants {
            claims.insert(own(claimant));
        }
        assert!(claims.take(claimants[0], &NAME).is_none());
        assert!(claimants[1..].iter().all(|&claimant| claims.take(claimant, &NAME).is_some()));
    }
}
