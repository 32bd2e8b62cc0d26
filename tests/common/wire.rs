//! The way to a store.

use std::time::Duration;

use tower_idempotency::{
    Claim, Claimant, Issue, MemoryStore, RecordKey, Release, Settlement, StoreError,
    store::{Claimed, Finished, Issued, Renewed, Store, StoreFuture},
    testing::FaultyStore,
};

/// A store as one sees it over a network: what was sent gets there, though its sender may have left.
#[derive(Clone, Debug)]
pub struct Wire(pub FaultyStore<MemoryStore>);

fn sent<'a, T: Send + 'static>(
    call: impl Future<Output = Result<T, StoreError>> + Send + 'static,
) -> StoreFuture<'a, T> {
    StoreFuture::new(async move { tokio::spawn(call).await.expect("a store does not panic") })
}

macro_rules! verbs {
    ($($verb:ident($argument:ty) -> $answer:ty;)*) => {
        $(fn $verb<'a>(&'a self, key: &'a RecordKey, argument: &'a $argument) -> StoreFuture<'a, $answer> {
            let (store, key, argument) = (self.0.clone(), key.clone(), argument.clone());
            sent(async move { store.$verb(&key, &argument).await })
        })*
    };
}

impl Store for Wire {
    verbs! {
        issue(Issue) -> Issued;
        claim(Claim) -> Claimed;
        renew(Claim) -> Renewed;
        settle(Settlement) -> Finished;
        release(Release) -> Finished;
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        self.0.changed(key, holder, within)
    }
}
