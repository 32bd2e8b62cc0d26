//! A scope may be given a share of the room.

use super::*;
use crate::{
    store::Issued,
    value::{Binding, Issue, StoreErrorKind},
};

fn shared(records: usize) -> (MemoryStore, Manual) {
    let clock = Manual::new();
    (MemoryStore::builder().share_per_scope(records).clock(clock.clone()).build(), clock)
}

fn of(scope: &str, name: impl ToString) -> RecordKey {
    RecordKey::new("/orders", Some(scope), &name.to_string()).unwrap()
}

fn too_many<T: Unpin>(answer: StoreFuture<'_, T>) {
    let error = try_now(answer).map(drop).unwrap_err();
    assert_eq!((error.kind(), error.is_temporary()), (StoreErrorKind::TooManyKeys, true));
    assert!(error.is_without_effect());
}

#[test]
fn a_scope_holds_no_more_than_its_share_and_others_go_on() {
    let (store, clock) = shared(3);
    for number in 0..3 {
        let claim = claim(10, 1000);
        assert_eq!(now(store.claim(&of("ann", number), &claim)), granted(1));
        now(store.settle(&of("ann", number), &settlement(claim.claimant, 500)));
    }
    too_many(store.claim(&of("ann", 3), &claim(10, 10)));
    // What is there already is answered, in a namespace of its own and for another scope there is room, and what has no
    // scope is nobody's.
    assert!(matches!(now(store.claim(&of("ann", 0), &claim(10, 10))), Claimed::Settled(..)));
    assert_eq!(now(store.namespace("other").claim(&of("ann", 3), &claim(10, 10))), granted(1));
    assert_eq!(now(store.claim(&of("bob", 3), &claim(10, 10))), granted(1));
    for number in 0..10 {
        store.grant(number, 10, 10);
    }
    clock.pass(500);
    for number in 3..6 {
        assert_eq!(
            now(store.claim(&of("ann", number), &claim(10, 1000))),
            granted(1),
            "what has expired holds nothing"
        );
    }
    too_many(store.claim(&of("ann", 6), &claim(10, 10)));
}

#[test]
fn released_records_do_not_count_until_they_run_again() {
    let (store, _) = shared(1);
    let first = claim(10, 1000);
    now(store.claim(&of("ann", 1), &first));
    now(store.release(&of("ann", 1), &release(first.claimant, 1000)));
    let second = claim(10, 1000);
    assert_eq!(now(store.claim(&of("ann", 2), &second)), granted(1));
    too_many(store.claim(&of("ann", 1), &claim(10, 1000)));
    assert_eq!(now(store.inspect(&of("ann", 1))).unwrap().attempt, 1);
    now(store.release(&of("ann", 2), &undo(second.claimant, 1000)));
    assert_eq!(now(store.claim(&of("ann", 1), &claim(10, 1000))), granted(2));
    too_many(store.claim(&of("ann", 2), &claim(10, 1000)));
    assert!(now(store.forget(&of("ann", 1))));
    assert_eq!(now(store.claim(&of("ann", 2), &claim(10, 1000))), granted(1));
}

#[test]
fn a_token_counts_for_its_principal() {
    let (store, _) = shared(2);
    let issue = |name: &str, principal: Option<&str>| {
        try_now(store.issue(&key(name), &Issue::new(Binding::new("order", principal), DAY)))
    };
    assert_eq!(issue("a", Some("ann")).unwrap(), Issued::Done);
    assert_eq!(issue("b", Some("ann")).unwrap(), Issued::Done);
    assert_eq!(issue("c", Some("ann")).unwrap_err().kind(), StoreErrorKind::TooManyKeys);
    assert_eq!(issue("c", Some("bob")).unwrap(), Issued::Done);
    for name in ["d", "e", "f"] {
        assert_eq!(issue(name, None).unwrap(), Issued::Done);
    }
    // Claimed, settled, or released, it is still the principal's.
    let claim = Claim { issued: Some(Binding::new("order", Some("ann"))), ..claim(10, 10) };
    now(store.claim(&key("a"), &claim));
    assert_eq!(issue("g", Some("ann")).unwrap_err().kind(), StoreErrorKind::TooManyKeys);
    now(store.release(&key("a"), &release(claim.claimant, 0)));
    assert_eq!(issue("g", Some("ann")).unwrap_err().kind(), StoreErrorKind::TooManyKeys);
    now(store.forget(&key("a")));
    assert_eq!(issue("g", Some("ann")).unwrap(), Issued::Done);
}

#[test]
fn racing_claims_take_a_share_and_no_more() {
    let (store, _) = shared(100);
    let granted: usize = std::thread::scope(|scope| {
        let thread = |thread: usize| {
            let store = store.clone();
            scope.spawn(move || {
                let claimed = |number: usize| try_now(store.claim(&of("ann", thread * 100 + number), &claim(10, 1000)));
                (0..100).filter(|&number| claimed(number).is_ok()).count()
            })
        };
        let threads: Vec<_> = (0..4).map(thread).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(granted, 100);
}
