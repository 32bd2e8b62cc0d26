use std::{sync::Arc, time::Duration};

use crate::{
    store::{Committed, Entered, FailedAttempt, StoreFuture, Transaction, TransactionSlot, TransactionalStore},
    value::{Claim, RecordKey, Settlement},
};

use super::{SealedStore, sealer::Sealer};

/// The inner store claims, commits and rolls back; the answer that is committed is sealed.
impl<S: TransactionalStore> TransactionalStore for SealedStore<S> {
    fn enter<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Entered> {
        StoreFuture::new(async move {
            let with_note = self.sealer.claim(key, claim)?;
            Ok(match self.inner.enter(key, with_note.as_ref().unwrap_or(claim)).await? {
                Entered::Granted(granted, inner) => {
                    let sealer = Arc::clone(&self.sealer);
                    Entered::Granted(granted, Box::new(SealedTransaction { inner, sealer, key: key.clone() }))
                }
                Entered::Refused(claimed) => Entered::Refused(self.sealer.claimed(key, claimed)),
            })
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
        StoreFuture::new(async move {
            let (note, payload) = (self.sealer.claim(key, claim)?, self.sealer.failed(key, failed)?);
            self.inner.record_failure(key, note.as_ref().unwrap_or(claim), payload.as_ref().unwrap_or(failed)).await
        })
    }
}

/// A transaction of the inner store. If it is dropped, the inner one is rolled back.
struct SealedTransaction {
    inner: Box<dyn Transaction>,
    sealer: Arc<Sealer>,
    key: RecordKey,
}

impl Transaction for SealedTransaction {
    fn slot(&self) -> TransactionSlot {
        self.inner.slot()
    }

    fn commit(self: Box<Self>, settlement: Settlement) -> StoreFuture<'static, Committed> {
        match self.sealer.settlement(&self.key, &settlement) {
            Ok(sealed) => self.inner.commit(sealed.unwrap_or(settlement)),
            Err(error) => StoreFuture::ready(Ok(Committed::RolledBack(error))),
        }
    }

    fn roll_back(self: Box<Self>) -> StoreFuture<'static, ()> {
        self.inner.roll_back()
    }
}
