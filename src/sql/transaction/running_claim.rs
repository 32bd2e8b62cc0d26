use std::sync::Arc;

use sqlx::Database;

use crate::{sql::store::SqlShared, store::Granted, value::Claim};

use super::in_process_claims::ClaimEntry;

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
        shared.running.add(id, claim, granted)?;
        Ok(Self { shared: Arc::clone(shared), id: id.to_vec() })
    }

    /// Records that the claim is written.
    pub(in crate::sql) fn written(&self) {
        self.shared.running.written(&self.id);
    }
}

impl<D: Database> Drop for RunningClaim<D> {
    fn drop(&mut self) {
        // A claim that was refused has ended nothing: if it woke those who wait, they would all ask, and wake one another.
        if self.shared.running.remove(&self.id) {
            self.shared.waiters.wake(&self.id);
        }
    }
}
