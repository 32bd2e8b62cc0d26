use tokio::time::{Instant, advance};

use super::*;
use crate::value::Binding;

fn waiting(store: &MemoryStore) -> usize {
    (0..store.memory.shards()).map(|shard| store.memory.lock(shard).waiters.len()).sum()
}

/// Polls once; says whether it is ready.
fn poll(future: &mut StoreFuture<'_, ()>) -> bool {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test(start_paused = true)]
async fn every_change_wakes() {
    type Change = fn(&MemoryStore, &Manual, &Claim);
    let changes: [Change; 8] = [
        |store, _, claim| {
            now(store.settle(&key("a"), &settlement(claim.claimant, 1000)));
        },
        |store, _, claim| {
            now(store.settle(&key("a"), &settlement(claim.claimant, 0)));
        },
        |store, _, claim| {
            now(store.release(&key("a"), &release(claim.claimant, 1000)));
        },
        |store, _, _| {
            now(store.forget(&key("a")));
        },
        |store, clock, _| {
            clock.pass(10);
            now(store.claim(&key("a"), &claim(10, 10)));
        },
        |store, clock, claim| {
            clock.pass(10);
            now(store.settle_as(&key("a"), claim.claimant, &settlement(Claimant::random(), 1)));
        },
        |store, clock, claim| {
            clock.pass(10);
            now(store.release_as(&key("a"), claim.claimant, &release(Claimant::random(), 1)));
        },
        |store, clock, _| {
            clock.pass(100);
            now(store.purge(1));
        },
    ];
    for (number, change) in changes.iter().enumerate() {
        for polled in [true, false] {
            let (store, clock) = store();
            let claim = store.grant("a", 10, 100);
            let key = key("a");
            let mut wait = store.changed(&key, claim.claimant, DAY);
            if polled {
                assert!(!poll(&mut wait));
            }
            assert_eq!(waiting(&store), 1);
            change(&store, &clock, &claim);
            assert_eq!(waiting(&store), 0);
            assert!(poll(&mut wait), "{number} {polled}");
            // A change before the call counts too.
            assert!(poll(&mut store.changed(&key, claim.claimant, DAY)));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_and_a_lapsed_lease_are_no_change() {
    let (store, clock) = store();
    let claim = store.grant("a", 10, 1000);
    let key = key("a");
    let mut wait = store.changed(&key, claim.claimant, DAY);
    clock.pass(20);
    now(store.claim(&key, &Claim { fingerprint: number(1), ..claim.clone() }));
    now(store.renew(&key, &claim));
    assert!(!poll(&mut wait));
    let began = Instant::now();
    assert!(poll(&mut store.changed(&key, claim.claimant, Duration::ZERO)));
    store.changed(&key, claim.claimant, ms(300)).await.unwrap();
    assert_eq!(began.elapsed(), ms(300));
    let forever = Claim { lease: Duration::MAX, ..claim };
    now(store.renew(&key, &forever));
    let mut wait = store.changed(&key, forever.claimant, Duration::MAX);
    assert!(!poll(&mut wait));
    advance(DAY * 1000).await;
    assert!(!poll(&mut wait));
    now(store.forget(&key));
    assert!(poll(&mut wait));
}

#[tokio::test(start_paused = true)]
async fn an_expiry_wakes_though_nobody_calls() {
    let store = MemoryStore::new();
    let claim = store.grant("a", 10, 1000);
    let began = Instant::now();
    let key = key("a");
    let wait = store.changed(&key, claim.claimant, DAY);
    advance(ms(500)).await;
    now(store.renew(&key, &claim));
    wait.await.unwrap();
    assert!((ms(1500)..ms(1510)).contains(&began.elapsed()), "{:?}", began.elapsed());
    assert_eq!(waiting(&store), 0);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_leaves_nothing_behind() {
    let (store, _) = store();
    let claim = store.grant("a", 1000, 1000);
    let key = key("a");
    let mut waits: Vec<_> = (0..10).map(|_| store.changed(&key, claim.claimant, DAY)).collect();
    assert!(!waits.iter_mut().any(poll));
    waits.truncate(1);
    assert_eq!(waiting(&store), 1);
    // The slot is another record's when the last one leaves.
    now(store.forget(&key));
    let claim = store.grant("a", 1000, 1000);
    let mut other = store.changed(&key, claim.claimant, DAY);
    drop(waits);
    assert_eq!(waiting(&store), 1);
    assert!(!poll(&mut other));
    drop(other);
    assert_eq!(waiting(&store), 0);
    now(store.settle(&key, &settlement(claim.claimant, 1)));
}

#[tokio::test]
async fn a_thousand_waiters_are_woken() {
    let (store, _) = store();
    let claim = store.grant("a", 1000, 1000);
    let waits: Vec<_> = (0..1000)
        .map(|_| {
            let (store, holder) = (store.clone(), claim.claimant);
            tokio::spawn(async move { store.changed(&key("a"), holder, DAY).await })
        })
        .collect();
    tokio::task::yield_now().await;
    now(store.settle(&key("a"), &settlement(claim.claimant, 1000)));
    for wait in waits {
        wait.await.unwrap().unwrap();
    }
    assert_eq!(waiting(&store), 0);
}

#[tokio::test]
async fn a_released_token_wakes() {
    let (store, _) = store();
    let binding = Binding::new("order", None);
    now(store.issue(&key("t"), &crate::value::Issue::new(binding.clone(), DAY)));
    let claim = Claim { issued: Some(binding), ..claim(1000, 1000) };
    now(store.claim(&key("t"), &claim));
    let key = key("t");
    let mut wait = store.changed(&key, claim.claimant, DAY);
    now(store.release(&key, &release(claim.claimant, 0)));
    assert!(poll(&mut wait));
    assert!(poll(&mut store.changed(&key, claim.claimant, DAY)));
}
