//! Stores behind a pointer.

use std::{sync::Arc, time::Duration};

use crate::value::{Claim, Claimant, Filter, Issue, Record, RecordKey, Release, Settlement};

use super::{
    Claimed, Cursor, Finished, Issued, Page, Renewed, Stats, Store, StoreAdmin, StoreFuture, support::forward_store,
};

impl<S: Store + ?Sized> Store for Arc<S> {
    forward_store!([as_ref()] is_immediate, issue, claim, renew, settle, release, changed);
}

impl<S: StoreAdmin + ?Sized> StoreAdmin for Arc<S> {
    forward_store!([as_ref()] inspect, list, settle_as, release_as, forget, purge, stats);
}

impl<S: Store + ?Sized> Store for Box<S> {
    forward_store!([as_ref()] is_immediate, issue, claim, renew, settle, release, changed);
}

impl<S: StoreAdmin + ?Sized> StoreAdmin for Box<S> {
    forward_store!([as_ref()] inspect, list, settle_as, release_as, forget, purge, stats);
}
