use std::time::Duration;

use crate::{
    store::{Entered, FailedAttempt, StoreAdmin, StoreFuture, TransactionalStore},
    value::{Claim, RecordKey},
};

use super::CachedStore;

/// The database decides, in its transactions; duplicates of settled records need not go there.
impl<F: StoreAdmin, S: StoreAdmin + TransactionalStore> TransactionalStore for CachedStore<F, S> {
    fn enter<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Entered> {
        StoreFuture::new(async move {
            if let Some(answer) = self.lookup(key, claim).await {
                return Ok(Entered::Refused(answer));
            }
            let entered = self.inner.enter(key, claim).await?;
            if let Entered::Refused(claimed) = &entered {
                self.fill(key, claim, claimed).await;
            }
            Ok(entered)
        })
    }

    fn left<'a>(&'a self, key: &'a RecordKey, within: Duration) -> StoreFuture<'a, ()> {
        self.inner.left(key, within)
    }

    fn record_failure<'a>(
        &'a self,
        key: &'a RecordKey,
        claim: &'a Claim,
        failed: &'a FailedAttempt,
    ) -> StoreFuture<'a, ()> {
        self.inner.record_failure(key, claim, failed)
    }
}
