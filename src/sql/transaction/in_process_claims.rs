//! The keys that run in transactions of this process.
//!
//! A place is taken before the claim is written and kept until the connection has ended. `written` separates the two
//! halves: a claim that was not written yet may turn out to be refused, so nobody is answered by it unless the record
//! was read.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    store::Granted,
    value::{Claim, RecordHead, State, millis},
};

/// The keys that are running in transactions of this process.
///
/// Other transactions cannot see them in the table. They are checked first, so that a duplicate does not need a
/// connection of the pool, which may be empty because of the very work that it repeats.
#[derive(Default)]
pub(in crate::sql) struct InProcessClaims(Mutex<HashMap<Vec<u8>, ClaimEntry>>);

/// The claim that is running under a key.
#[derive(Clone, Copy)]
pub(in crate::sql) struct ClaimEntry {
    pub(super) head: RecordHead<'static>,
    /// Whether it is written. Until then it may find that another claim is written.
    pub(super) written: bool,
}

impl InProcessClaims {
    /// Returns the claim that runs under a key.
    pub(in crate::sql) fn get(&self, id: &[u8]) -> Option<ClaimEntry> {
        self.lock().get(id).copied()
    }

    /// Adds a claim that is not written yet, or returns the one that runs under the key.
    pub(super) fn add(&self, id: &[u8], claim: &Claim, granted: Granted) -> Result<(), Box<ClaimEntry>> {
        let mut running = self.lock();
        if let Some(runner) = running.get(id) {
            return Err(Box::new(*runner));
        }
        let head = RecordHead {
            fingerprint: claim.fingerprint,
            caller: claim.caller,
            caller_is_new: granted.caller_is_new,
            secret: claim.secret,
            origin: granted.origin,
            lease_ends: millis(claim.lease).max(1),
            ..RecordHead::new(State::Running, claim.claimant, granted.attempt)
        };
        running.insert(id.to_vec(), ClaimEntry { head, written: false });
        Ok(())
    }

    /// Records that a claim is written.
    pub(super) fn written(&self, id: &[u8]) {
        if let Some(runner) = self.lock().get_mut(id) {
            runner.written = true;
        }
    }

    /// Removes a claim, and returns whether it was written.
    pub(super) fn remove(&self, id: &[u8]) -> bool {
        self.lock().remove(id).is_some_and(|runner| runner.written)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, ClaimEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
