//! The trait `Store`, which the methods of the other files implement.
//!
//! There is one statement behind each method on the common path; the files that implement them say when it takes more.

use std::time::Duration;

use crate::{
    sql::{SqlStore, driver::SqlDatabase},
    store::{Claimed, Finished, Issued, Renewed, Store, StoreFuture},
    value::{Behalf, Claim, Claimant, Issue, RecordKey, Release, Settlement},
};

impl<D: SqlDatabase> Store for SqlStore<D> {
    fn is_immediate(&self) -> bool {
        false
    }

    fn issue<'a>(&'a self, key: &'a RecordKey, issue: &'a Issue) -> StoreFuture<'a, Issued> {
        StoreFuture::new(self.issue_record(key, issue))
    }

    fn claim<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Claimed> {
        StoreFuture::new(self.try_claim(key, claim))
    }

    fn renew<'a>(&'a self, key: &'a RecordKey, claim: &'a Claim) -> StoreFuture<'a, Renewed> {
        StoreFuture::new(self.renew_claim(key, claim))
    }

    fn settle<'a>(&'a self, key: &'a RecordKey, settlement: &'a Settlement) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.settle_record(key, Behalf::Own, settlement))
    }

    fn release<'a>(&'a self, key: &'a RecordKey, release: &'a Release) -> StoreFuture<'a, Finished> {
        StoreFuture::new(self.release_record(key, Behalf::Own, release))
    }

    fn changed<'a>(&'a self, key: &'a RecordKey, holder: Claimant, within: Duration) -> StoreFuture<'a, ()> {
        StoreFuture::new(self.wait(key, holder, within))
    }
}
