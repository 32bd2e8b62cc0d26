use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};

use tokio::time::{advance, sleep};
use tower_idempotency::store::{
    Claim, Claimant, Claimed, Finished, Issue, Issued, RecordKey, Release, Renewed, Settlement, Store, StoreFuture,
};

/// A store at the other end of a wire: what was sent arrives after a while, whether or not its sender still waits.
#[derive(Debug)]
pub struct Wire<S> {
    store: S,
    claims_take: Duration,
    /// For how long this process stands still with the answer to its first claim on the way.
    stands_still: Duration,
    claimed: AtomicBool,
}

impl<S> Wire<S> {
    pub fn new(store: S, claims_take: Duration) -> Self {
        Self { store, claims_take, stands_still: Duration::ZERO, claimed: AtomicBool::new(false) }
    }

    pub fn of_a_process_that_stands_still(store: S, stands_still: Duration) -> Self {
        Self { stands_still, ..Self::new(store, Duration::ZERO) }
    }
}

impl<S: Store + Clone> Store for Wire<S> {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        self.store.issue(key, issue)
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        let (store, key, claim, takes) = (self.store.clone(), key.clone(), claim.clone(), self.claims_take);
        let sent = tokio::spawn(async move {
            sleep(takes).await;
            store.claim(&key, &claim).await
        });
        StoreFuture::new(async {
            let claimed = sent.await.expect("no panic");
            if !self.claimed.swap(true, SeqCst) {
                advance(self.stands_still).await;
            }
            claimed
        })
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        self.store.renew(key, claim)
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        self.store.settle(key, settlement)
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        self.store.release(key, release)
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        self.store.changed(key, holder, within)
    }
}
