//! The way to a store.

use std::{sync::Arc, time::Duration};

use tower_idempotency::{
    MemoryStore,
    store::{
        Claim, Claimant, Claimed, Finished, Issue, Issued, RecordKey, Release, Renewed, Settlement, Store, StoreFuture,
    },
    testing::FaultyStore,
};

/// Passes calls on.
#[derive(Clone, Debug)]
pub struct Wire {
    pub store: FaultyStore<MemoryStore>,
    /// What was sent gets there, though its sender may have left.
    pub far: bool,
    /// Each call of `changed` that goes on has a clone of it.
    pub waiting: Arc<()>,
}

macro_rules! verbs {
    ($($verb:ident($argument:ty) -> $answer:ty;)*) => {
        $(fn $verb<'a>(&'a self, key: &'a RecordKey, argument: &'a $argument) -> StoreFuture<'a, $answer> {
            if !self.far {
                return self.store.$verb(key, argument);
            }
            let (store, key, argument) = (self.store.clone(), key.clone(), argument.clone());
            StoreFuture::new(async move {
                let sent = tokio::spawn(async move { store.$verb(&key, &argument).await });
                sent.await.expect("a store does not panic")
            })
        })*
    };
}

impl Store for Wire {
    fn is_immediate(&self) -> bool {
        false
    }

    verbs! {
        issue(Issue) -> Issued;
        claim(Claim) -> Claimed;
        renew(Claim) -> Renewed;
        settle(Settlement) -> Finished;
        release(Release) -> Finished;
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        let (change, waits) = (self.store.changed(key, holder, within), self.waiting.clone());
        StoreFuture::new(async move {
            let change = change.await;
            drop(waits);
            change
        })
    }
}
