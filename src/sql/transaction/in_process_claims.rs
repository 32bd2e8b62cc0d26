//! The keys that run in transactions of this process.
//!
//! A place is taken before the claim is written and kept until the connection has ended. `written` separates the two
//! halves: a claim that was not written yet may turn out to be refused, so nobody is answered by it unless the record
//! was read.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sqlx::Database;

use crate::{
    sql::store::SqlShared,
    store::Granted,
    value::{Claim, Head, State, millis},
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
    pub(super) head: Head<'static>,
    /// Whether it is written. Until then it may find that another claim is written.
    pub(super) written: bool,
}

impl InProcessClaims {
    /// Returns the claim that runs under a key.
    pub(in crate::sql) fn get(&self, id: &[u8]) -> Option<ClaimEntry> {
        self.lock().get(id).copied()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Vec<u8>, ClaimEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key's place among the running claims, given up when it is dropped.
pub(in crate::sql) struct RunningClaim<D: Database> {
    shared: Arc<SqlShared<D>>,
    id: Vec<u8>,
}

impl<D: Database> RunningClaim<D> {
    /// Takes the place, or returns who has it.
    pub(in crate::sql) fn take(
        shared: &Arc<SqlShared<D>>,
        id: &[u8],
        claim: &Claim,
        granted: Granted,
    ) -> Result<Self, Box<ClaimEntry>> {
        let mut running = shared.running.lock();
        if let Some(runner) = running.get(id) {
            return Err(Box::new(*runner));
        }
        let head = Head {
            fingerprint: claim.fingerprint,
            caller: claim.caller,
            caller_is_new: granted.caller_is_new,
            secret: claim.secret,
            origin: granted.origin,
            lease_ends: millis(claim.lease).max(1),
            ..Head::new(State::Running, claim.claimant, granted.attempt)
        };
        running.insert(id.to_vec(), ClaimEntry { head, written: false });
        Ok(Self { shared: Arc::clone(shared), id: id.to_vec() })
    }

    /// Records that the claim is written.
    pub(in crate::sql) fn written(&self) {
        if let Some(runner) = self.shared.running.lock().get_mut(&self.id) {
            runner.written = true;
        }
    }
}

impl<D: Database> Drop for RunningClaim<D> {
    fn drop(&mut self) {
        let runner = self.shared.running.lock().remove(&self.id);
        // One that only asked, and was refused, has ended nothing: those who wait would all ask, and wake one another.
        if runner.is_some_and(|runner| runner.written) {
            self.shared.waiters.wake(&self.id);
        }
    }
}
