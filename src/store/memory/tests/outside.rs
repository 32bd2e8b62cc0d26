//! Code of the application's runs outside of all locks: it may call the store.

use std::{
    sync::{Mutex, atomic::AtomicUsize},
    task::Wake,
};

use bytes::Bytes;

use super::*;
use crate::value::Filter;

/// A buffer whose destructor uses the store.
struct Owner(MemoryStore, Arc<AtomicUsize>);

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        &[b'x'; 5000]
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        now(self.0.stats());
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn destructors_may_use_the_store() {
    let (store, clock) = sized(10);
    let dropped = Arc::new(AtomicUsize::new(0));
    let buffer = || Bytes::from_owner(Owner(store.clone(), Arc::clone(&dropped)));
    let dropped = || dropped.load(Ordering::SeqCst);
    let kept = |name: &str, retention: u64| {
        let claim = store.grant(name, 10, 1000);
        now(store.settle(&key(name), &Settlement::new(claim.claimant, Some(buffer()), ms(retention))));
    };

    kept("a", 1000);
    now(store.forget(&key("a")));
    assert_eq!(dropped(), 1);

    kept("a", 10);
    clock.pass(10);
    kept("a", 10);
    assert_eq!(dropped(), 2);

    clock.pass(1000);
    now(store.purge(10));
    assert_eq!(dropped(), 3);

    kept("a", 0);
    assert_eq!(dropped(), 4);
}

struct Caller(MemoryStore, Mutex<bool>);

impl Wake for Caller {
    fn wake(self: Arc<Self>) {
        now(self.0.stats());
        *self.1.lock().unwrap() = true;
    }
}

#[tokio::test]
async fn wakers_may_use_the_store() {
    let (store, _) = store();
    let claim = store.grant("a", 1000, 1000);
    let key = key("a");
    let mut wait = store.changed(&key, claim.claimant, DAY);
    let caller = Arc::new(Caller(store.clone(), Mutex::new(false)));
    let waker = Waker::from(Arc::clone(&caller));
    assert!(std::pin::Pin::new(&mut wait).poll(&mut Context::from_waker(&waker)).is_pending());
    now(store.settle(&key, &settlement(claim.claimant, 1000)));
    assert!(*caller.1.lock().unwrap());
    wait.await.unwrap();
}

struct Counting(Arc<AtomicUsize>);

impl Clock for Counting {
    fn now(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst);
        START
    }
}

#[test]
fn the_clock_is_read_once_for_each_call() {
    let reads = Arc::new(AtomicUsize::new(0));
    let store = MemoryStore::builder().capacity(1).clock(Counting(Arc::clone(&reads))).build();
    let key = key("a");
    let claim = claim(10, 10);
    let calls: [&dyn Fn(); 7] = [
        &|| drop(now(store.claim(&key, &claim))),
        &|| assert!(now(store.renew(&key, &claim)) == crate::store::Renewed::Done),
        &|| drop(try_now(store.claim(&super::key("b"), &claim)).unwrap_err()),
        &|| drop(now(store.settle(&key, &settlement(claim.claimant, 10)))),
        &|| drop(now(store.inspect(&key))),
        &|| drop(now(store.list(Filter::All, None, 100))),
        &|| now(store.changed(&key, claim.claimant, DAY)),
    ];
    for (number, call) in calls.iter().enumerate() {
        call();
        assert_eq!(reads.load(Ordering::SeqCst), number + 1);
    }
}
