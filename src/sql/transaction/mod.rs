//! Claims that are committed or rolled back with the transaction of the work.

mod enter;
#[cfg(feature = "axum")]
mod extractor;
mod failure;
mod open;
mod operation;
mod running;
mod slot;
mod within;

use std::time::Duration;

use crate::{
    store::{Entered, FailedAttempt, StoreFuture, TransactionalStore},
    value::{Claim, RecordKey},
};

use super::{SqlStore, driver::Driver};

pub(in crate::sql) use self::running::Running;
pub use self::slot::{NoTransaction, Tx};

impl<D: Driver> TransactionalStore for SqlStore<D> {
    fn enter<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Entered> {
        StoreFuture::new(self.enter_transaction(key, claim))
    }

    fn left<'a>(&'a self, key: &'a RecordKey, within: Duration) -> StoreFuture<'a, ()> {
        StoreFuture::new(async move {
            self.shared.room.wait(&self.space.id(key), within).await;
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
