//! Claims that are committed or rolled back with the transaction of the work.
//!
//! # In reading order
//!
//! 1. `enter`: the claim. Keys that run in this process, then the committed record, then a transaction.
//! 2. `in_process_claims`: the keys that run in transactions of this process, which no other connection can see.
//!    `running_claim`: the place of one of them, given up when it is dropped.
//! 3. `open_transaction`: the connection with the open transaction. `claim_transaction`: the claim in it, which commits
//!    or rolls back.
//! 4. `tx`: the transaction while the handler has it. `cell`: while it has not.
//! 5. `extractor`, `operation`: how a handler takes it. `settle_in`: settling in a transaction of the application's own.
//! 6. `failure`: counting an attempt that was rolled back, in a statement outside of the transaction.
//!
//! # What always holds
//!
//! - The claim is the first write of the transaction and the settlement is the last. If the row is gone by then, so is
//!   what was done in between, and the commit is refused.
//! - A transaction that is dropped is rolled back: its connection is closed and never returns to the pool.
//! - A duplicate waits for no row lock. Locks are tried; what cannot be had is a refusal or the committed record.
//! - One connection of the pool is left for statements outside of transactions (`seats`).
//! - The key leaves `running` after its connection has ended, so that a duplicate does not run beside it (the order of
//!   the fields of `OpenTransaction`).

mod cell;
mod claim_transaction;
mod enter;
#[cfg(feature = "axum")]
mod extractor;
mod failure;
mod in_process_claims;
mod no_transaction;
mod open_transaction;
mod operation;
mod running_claim;
mod settle_in;
mod tx;

use std::time::Duration;

use crate::{
    store::{Entered, FailedAttempt, StoreFuture, TransactionalStore},
    value::{Claim, RecordKey},
};

use super::{SqlStore, driver::SqlDatabase};

pub(in crate::sql) use self::in_process_claims::InProcessClaims;
pub use self::{no_transaction::NoTransaction, tx::Tx};

impl<D: SqlDatabase> TransactionalStore for SqlStore<D> {
    fn enter<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Entered> {
        StoreFuture::new(self.begin_claim(key, claim))
    }

    fn left<'a>(&'a self, key: &'a RecordKey, within: Duration) -> StoreFuture<'a, ()> {
        StoreFuture::new(async move {
            self.shared.waiters.wait(&self.space.id(key), within).await;
            Ok(())
        })
    }

    fn record_failure<'a>(
        &'a self,
        key: &'a RecordKey,
        claim: &'a Claim,
        failed: &'a FailedAttempt,
    ) -> StoreFuture<'a, ()> {
        StoreFuture::new(self.record_failed(key, claim, failed))
    }
}
