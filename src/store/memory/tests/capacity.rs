use super::*;
use crate::{
    store::Issued,
    value::{Binding, Issue, State, StoreErrorKind},
};

fn full(store: &MemoryStore, name: impl ToString) {
    let error = try_now(store.claim(&key(name), &claim(10, 10))).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full);
    assert!(error.is_temporary());
}

#[test]
fn nothing_that_counts_is_dropped_for_room() {
    let (store, clock) = sized(4);
    let space = store.namespace("other");
    space.settled("a", 1000);
    store.grant("b", 10, 1000);
    store.grant("c", 10, 1000);
    let binding = Binding::new("order", None);
    now(store.issue(&key("d"), &Issue::new(binding.clone(), ms(1000))));
    let token = || Claim { issued: Some(binding.clone()), ..claim(100, 100) };
    let first = token();
    now(store.claim(&key("d"), &first));
    now(store.release(&key("d"), &release(first.claimant, 1)));
    clock.pass(999);
    full(&store, "e");
    full(&space, "e");
    assert!(try_now(store.issue(&key("e"), &Issue::new(binding.clone(), ms(1)))).is_err());
    assert_eq!(now(store.issue(&key("d"), &Issue::new(binding.clone(), ms(1)))), Issued::Exists);
    // What is there already needs no room.
    assert_eq!(now(store.claim(&key("b"), &claim(10, 1000))), taken_over(2));
    assert_eq!(now(store.claim(&key("d"), &token())), granted(2));
    // What has expired at once needs none either.
    now(store.claim(&key("e"), &claim(0, 0)));
    clock.pass(1);
    // Two have expired by now, and were not removed.
    assert_eq!(store.kept(), 4);
    store.grant("e", 1000, 1000);
    store.grant("f", 1000, 1000);
    full(&store, "g");
    assert_eq!(store.record("b").unwrap().state, State::Running);
}

#[test]
fn released_records_go_first_the_oldest_before_the_others() {
    let (store, clock) = sized(100);
    for number in 0..60 {
        store.released(number, 3_600_000);
        clock.pass(1 + number * 977 % 3000);
    }
    for number in 60..100 {
        store.settled(number, 3_600_000);
    }
    for number in 0..60 {
        assert!(store.record(number).is_some());
        store.settled(format!("new{number}"), 3_600_000);
        assert!(store.record(number).is_none(), "{number}");
        assert_eq!(store.kept(), 100);
    }
    full(&store, "more");
    assert!((60..100).all(|number| store.record(number).is_some()));
}

#[test]
fn expired_records_go_before_released_ones() {
    let (store, clock) = sized(3);
    store.released("a", 5000);
    store.settled("b", 10);
    store.settled("c", 1000);
    clock.pass(10);
    store.settled("d", 1000);
    assert!(store.record("a").is_some() && store.record("c").is_some());
    store.settled("e", 1000);
    assert!(store.record("a").is_none());
    full(&store, "f");
}

#[test]
fn a_released_record_that_is_claimed_again_is_safe() {
    let (store, _) = sized(2);
    store.released("a", 1000);
    store.released("b", 1000);
    store.grant("a", 1000, 1000);
    store.grant("c", 1000, 1000);
    assert!(store.record("b").is_none() && store.record("a").is_some());
    full(&store, "b");
}

#[test]
fn expired_records_do_not_make_a_store_full() {
    let (store, clock) = sized(5000);
    for round in 0..5_u64 {
        for number in 0..5000_u64 {
            store.settled(format!("{round}-{number}"), 1_000_000 + number % 40);
        }
        full(&store, "x");
        clock.pass(1_000_000 + round * 1_000_000_000 + 40);
    }
}

#[test]
fn none_fits_into_nothing() {
    full(&sized(0).0, "a");
}

#[test]
fn racing_claims_fill_a_store_to_the_brim() {
    for _ in 0..20 {
        let (store, clock) = sized(1000);
        for number in 0..300 {
            store.settled(format!("old{number}"), 5);
            store.released(format!("let go{number}"), 5000);
        }
        clock.pass(5);
        let granted: usize = std::thread::scope(|scope| {
            let thread = |thread: usize| {
                let store = store.clone();
                scope.spawn(move || {
                    let claim = |number| store.claim(&key(format!("{thread}/{number}")), &claim(1000, 1000)).ready();
                    (0..300).filter(|number| claim(*number)).count()
                })
            };
            let threads: Vec<_> = (0..4).map(thread).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!((granted, store.kept()), (1000, 1000));
    }
}

trait Ready {
    fn ready(self) -> bool;
}

impl Ready for StoreFuture<'_, Claimed> {
    fn ready(self) -> bool {
        try_now(self).is_ok()
    }
}
