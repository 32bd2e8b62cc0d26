//! Records that a database does not take.

use bytes::Bytes;
use tower_idempotency::store::{Claimed, Finished, Origin, Settlement, StoreAdmin, StoreErrorKind};

use super::{
    races::{MINUTE, claim, key},
    store,
};
use crate::database::TestDatabase;

pub(super) async fn an_answer_that_is_too_large<D: TestDatabase>() {
    let (_place, store) = store::<D>().await;
    an_answer_of(&store, GIGABYTE).await;
}

/// An answer of so many bytes is refused for good, and at once; a tombstone is taken, and the store goes on.
pub(crate) async fn an_answer_of<S: StoreAdmin>(store: &S, bytes: usize) {
    let (key, running) = (key("large"), claim());
    assert!(matches!(store.claim(&key, &running).await.unwrap(), Claimed::Granted(_)));
    let settle = |payload| Settlement::new(running.claimant, payload, MINUTE);
    let error = store.settle(&key, &settle(Some(Bytes::from(vec![0; bytes])))).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::TooLarge, "{error:?}");
    assert!(!error.is_temporary() && error.is_without_effect(), "{error:?}");
    assert!(error.to_string().contains("response_limit"), "{error}");
    assert!(matches!(store.settle(&key, &settle(None)).await.unwrap(), Finished::Done));
    assert_eq!(store.claim(&key, &claim()).await.unwrap(), Claimed::Settled(None, Origin::NONE));
    store.forget(&key).await.unwrap();
}

/// More than any of them takes. It is never sent, so it takes no room but addresses.
const GIGABYTE: usize = 1 << 30;
