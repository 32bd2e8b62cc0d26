use std::time::SystemTime;

use bytes::Bytes;

use super::*;
use crate::{
    store::{Cursor, Renewed, Stats},
    value::{Binding, Filter, Issue, Mismatch, Origin, State, StoreErrorKind},
};

#[test]
fn a_life_of_a_record() {
    let (store, clock) = store();
    let mut first = claim(100, 1000);
    first.fingerprint = number(1);
    first.caller = caller(3);
    first.note = Bytes::from_static(b"raw request");
    let granted_first = Claimed::Granted(Granted::first(&first));
    assert_eq!(now(store.claim(&key("a"), &first)), granted_first);
    assert_eq!(now(store.claim(&key("a"), &first)), granted_first);
    clock.pass(40);
    let second = Claim { claimant: Claimant::random(), ..first.clone() };
    let running = Claimed::Running { holder: first.claimant, left: ms(60) };
    assert_eq!(now(store.claim(&key("a"), &second)), running);
    let other = Claim { fingerprint: number(2), ..second.clone() };
    assert_eq!(now(store.claim(&key("a"), &other)), Claimed::Mismatch(Mismatch::Fingerprint));
    let stranger = Claim { caller: Caller::NONE, ..second.clone() };
    assert_eq!(now(store.claim(&key("a"), &stranger)), Claimed::Mismatch(Mismatch::Caller));

    assert_eq!(now(store.renew(&key("a"), &second)), Renewed::Lost);
    assert_eq!(now(store.renew(&key("a"), &first)), Renewed::Done);
    let record = store.record("a").unwrap();
    assert_eq!((record.lease, record.lease_left, record.expires_in), (ms(100), ms(100), ms(1000)));
    assert_eq!(refused(&now(store.settle(&key("a"), &settlement(second.claimant, 5)))), Some(State::Running));
    clock.pass(7);
    assert!(matches!(now(store.settle(&key("a"), &settlement(first.claimant, 500))), Finished::Done));
    assert!(matches!(now(store.settle(&key("a"), &settlement(first.claimant, 900))), Finished::AlreadyDone));
    assert_eq!(refused(&now(store.release(&key("a"), &release(first.claimant, 5)))), Some(State::Settled));
    assert_eq!(now(store.renew(&key("a"), &first)), Renewed::Lost);
    assert_eq!(now(store.claim(&key("a"), &second)), Claimed::Settled(Some("answer".into()), first.origin()));
    assert_eq!(now(store.claim(&key("a"), &other)), Claimed::Mismatch(Mismatch::Fingerprint));

    let record = store.record("a").unwrap();
    assert_eq!((record.state, record.attempt, record.claimant), (State::Settled, 1, first.claimant));
    assert_eq!((record.fingerprint, record.caller), (first.fingerprint, first.caller));
    assert_eq!((record.note, record.payload), (first.note.clone(), Some("answer".into())));
    assert_eq!(record.created, SystemTime::UNIX_EPOCH + ms(START));
    assert_eq!(record.settled, Some(SystemTime::UNIX_EPOCH + ms(START + 47)));
    assert_eq!(record.expires_in, ms(500));
    clock.pass(500);
    assert!(store.record("a").is_none());
    assert_eq!(now(store.claim(&key("a"), &other)), Claimed::Granted(Granted::first(&other)));
}

#[test]
fn a_takeover_raises_the_attempt() {
    let (store, clock) = store();
    let first = store.grant("a", 100, 1000);
    clock.pass(99);
    let second = claim(100, 1000);
    assert!(matches!(now(store.claim(&key("a"), &second)), Claimed::Running { .. }));
    clock.pass(1);
    assert!(store.record("a").unwrap().is_abandoned());
    let other = Claim { fingerprint: number(9), ..claim(100, 1000) };
    assert_eq!(now(store.claim(&key("a"), &other)), Claimed::Mismatch(Mismatch::Fingerprint));
    let taken = taken_over(2);
    assert_eq!(now(store.claim(&key("a"), &second)), taken);
    assert_eq!(now(store.claim(&key("a"), &second)), taken);
    assert_eq!(now(store.renew(&key("a"), &first)), Renewed::Lost);
    assert_eq!(refused(&now(store.settle(&key("a"), &settlement(first.claimant, 9)))), Some(State::Running));
    assert_eq!(refused(&now(store.release(&key("a"), &release(first.claimant, 9)))), Some(State::Running));
    assert_eq!(store.record("a").unwrap().created, SystemTime::UNIX_EPOCH + ms(START));
}

#[test]
fn whoever_still_matches_is_never_late() {
    let (store, clock) = store();
    let first = store.grant("a", 10, 1000);
    clock.pass(500);
    assert_eq!(now(store.renew(&key("a"), &first)), Renewed::Done);
    clock.pass(999);
    assert!(matches!(now(store.settle(&key("a"), &settlement(first.claimant, 9))), Finished::Done));
    let second = store.grant("b", 10, 1000);
    clock.pass(500);
    assert!(matches!(now(store.release(&key("b"), &release(second.claimant, 9))), Finished::Done));
}

#[test]
fn a_released_key_keeps_its_count_for_a_while() {
    let (store, clock) = store();
    let first = store.released("a", 300);
    assert!(matches!(now(store.release(&key("a"), &release(first.claimant, 9))), Finished::AlreadyDone));
    assert_eq!(refused(&now(store.settle(&key("a"), &settlement(first.claimant, 9)))), Some(State::Released));
    assert_eq!(refused(&now(store.release(&key("a"), &release(Claimant::random(), 9)))), Some(State::Released));
    clock.pass(299);
    let other = Claim { fingerprint: number(7), caller: caller(1), ..claim(100, 100) };
    let granted_next = Granted { attempt: 2, caller_is_new: true, ..Granted::first(&first) };
    assert_eq!(now(store.claim(&key("a"), &other)), Claimed::Granted(granted_next));
    assert_eq!(store.record("a").unwrap().caller, other.caller);
    now(store.release(&key("a"), &release(other.claimant, 300)));
    clock.pass(300);
    assert_eq!(now(store.claim(&key("a"), &claim(1, 1))), granted(1));
}

#[test]
fn an_undone_claim_leaves_what_was_before() {
    let (store, clock) = store();
    let first = store.grant("a", 100, 1000);
    assert!(matches!(now(store.release(&key("a"), &undo(first.claimant, 9))), Finished::Done));
    assert_eq!(refused(&now(store.release(&key("a"), &undo(first.claimant, 9)))), None);
    assert_eq!(store.kept(), 0);

    let nobodys = store.released("a", 1000);
    let anns = Claim { caller: caller(1), ..claim(100, 1000) };
    now(store.claim(&key("a"), &anns));
    assert!(matches!(now(store.release(&key("a"), &undo(anns.claimant, 500))), Finished::Done));
    assert!(matches!(now(store.release(&key("a"), &undo(anns.claimant, 500))), Finished::AlreadyDone));
    let record = store.record("a").unwrap();
    assert_eq!((record.state, record.attempt, record.expires_in), (State::Released, 1, ms(500)));
    assert_eq!((record.caller, record.caller_is_new, record.origin), (Caller::NONE, false, nobodys.origin()));
    assert_eq!(now(store.claim(&key("a"), &anns)), Claimed::Withdrawn);

    // Operators may take an abandoned claim back as well.
    let abandoned = store.grant("b", 10, 1000);
    clock.pass(10);
    let operator = Claimant::random();
    assert!(matches!(now(store.release_as(&key("b"), abandoned.claimant, &undo(operator, 9))), Finished::Done));
    assert!(store.record("b").is_none());
}

#[test]
fn unknown_keys_are_refused_and_nothing_is_made() {
    let (store, _) = store();
    let claim = claim(10, 10);
    assert_eq!(refused(&now(store.settle(&key("a"), &settlement(claim.claimant, 9)))), None);
    assert_eq!(refused(&now(store.release(&key("a"), &release(claim.claimant, 9)))), None);
    assert_eq!(refused(&now(store.settle_as(&key("a"), claim.claimant, &settlement(claim.claimant, 9)))), None);
    assert_eq!(refused(&now(store.release_as(&key("a"), claim.claimant, &release(claim.claimant, 9)))), None);
    assert_eq!(now(store.renew(&key("a"), &claim)), Renewed::Lost);
    assert!(!now(store.forget(&key("a"))));
    assert_eq!(store.kept(), 0);
}

#[test]
fn at_most_once_waits_for_reconciliation() {
    let (store, clock) = store();
    let first = Claim { at_most_once: true, ..claim(10, 10_000) };
    now(store.claim(&key("a"), &first));
    now(store.claim(&key("b"), &first));
    let operator = Claimant::random();
    let early = now(store.settle_as(&key("a"), first.claimant, &settlement(operator, 100)));
    assert_eq!(refused(&early), Some(State::Running));
    clock.pass(10);
    assert_eq!(now(store.claim(&key("a"), &claim(10, 10))), Claimed::OutcomeUnknown);
    let stranger = now(store.settle_as(&key("a"), Claimant::random(), &settlement(operator, 100)));
    assert_eq!(refused(&stranger), Some(State::Running));
    assert!(matches!(now(store.settle_as(&key("a"), first.claimant, &settlement(operator, 100))), Finished::Done));
    assert!(matches!(
        now(store.settle_as(&key("a"), first.claimant, &settlement(operator, 100))),
        Finished::AlreadyDone
    ));
    assert_eq!(refused(&now(store.settle(&key("a"), &settlement(first.claimant, 9)))), Some(State::Settled));
    assert!(matches!(now(store.release_as(&key("b"), first.claimant, &release(operator, 100))), Finished::Done));
    assert!(matches!(now(store.release_as(&key("b"), first.claimant, &release(operator, 100))), Finished::AlreadyDone));
    assert_eq!(now(store.claim(&key("b"), &claim(10, 10))), granted(2));
}

#[test]
fn zero_is_at_once_and_endless_is_no_overflow() {
    let (store, clock) = store();
    let lapsed = claim(0, 1000);
    now(store.claim(&key("a"), &lapsed));
    assert!(store.record("a").unwrap().is_abandoned());
    assert_eq!(now(store.claim(&key("a"), &claim(5, 5))), taken_over(2));
    store.settled("b", 0);
    store.released("c", 0);
    store.grant("d", 0, 0);
    now(store.issue(&key("e"), &Issue::new(Binding::new("x", None), Duration::ZERO)));
    assert!(["b", "c", "d", "e"].iter().all(|name| store.record(name).is_none()));
    assert_eq!(store.kept(), 1);

    let forever = Claim::new(Duration::MAX, Duration::MAX);
    now(store.claim(&key("f"), &forever));
    now(store.renew(&key("f"), &forever));
    clock.pass(1000 * 365 * 86_400_000);
    assert!(matches!(now(store.claim(&key("f"), &claim(1, 1))), Claimed::Running { .. }));
    now(store.settle(&key("f"), &Settlement::new(forever.claimant, None, Duration::MAX)));
    clock.pass(1000 * 365 * 86_400_000);
    assert_eq!(now(store.claim(&key("f"), &claim(1, 1))), Claimed::Settled(None, Origin::NONE));
    clock.pass(u64::MAX / 2);
    assert!(store.record("f").is_none());
    store.grant("f", 1, 1);
}

#[test]
fn namespaces_never_meet() {
    let (store, _) = store();
    let orders = store.namespace("orders");
    let nested = orders.namespace("orders");
    for space in [&store, &orders, &nested, &store.namespace("refunds"), &store.namespace("")] {
        space.settled("a", 1000);
        let stats = now(space.stats());
        assert_eq!(stats, Stats { settled: 1, ..Stats::default() });
        assert_eq!(now(space.list(Filter::All, None, 10)).entries.len(), 1);
    }
    assert!(now(orders.forget(&key("a"))));
    assert!(store.namespace("orders").record("a").is_none() && nested.record("a").is_some());
    assert_eq!(store.kept(), 4);
}

#[test]
fn lists_by_state_page_by_page() {
    let (store, clock) = store();
    for number in 0..300 {
        store.settled(format!("s{number}"), 1000);
        store.grant(format!("r{number}"), 10, 1000);
    }
    store.released("x", 1000);
    token(&store, "t", 1000);
    store.settled("gone", 10);
    clock.pass(10);
    let stats = Stats { issued: 1, running: 0, abandoned: 300, settled: 300, released: 1 };
    assert_eq!(now(store.stats()), stats);
    for (filter, count) in [
        (Filter::All, 602),
        (Filter::State(State::Settled), 300),
        (Filter::State(State::Issued), 1),
        (Filter::Abandoned, 300),
    ] {
        let mut keys = Vec::new();
        let mut next = None;
        loop {
            let page = now(store.list(filter, next, 7));
            assert!(page.entries.len() <= 7);
            keys.extend(page.entries.iter().map(|entry| {
                assert!(filter.admits(&entry.record));
                entry.key.key().to_owned()
            }));
            next = page.next;
            if next.is_none() {
                break;
            }
            // Records that come and go between the pages disturb nothing.
            let other = store.settled(format!("o{}", keys.len()), 1000);
            drop(other);
            now(store.forget(&key(format!("o{}", keys.len()))));
        }
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }
    for cursor in [vec![], vec![1; 7], vec![1; 9]] {
        let error = try_now(store.list(Filter::All, Some(Cursor::from_bytes(cursor)), 1)).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Other);
    }
    assert!(now(store.list(Filter::All, Some(Cursor::from_bytes(vec![255; 8])), 1)).next.is_none());
}

#[test]
fn what_is_shown_hides_what_is_kept() {
    let (store, _) = sized(5);
    store.settled("secret", 1000);
    assert_eq!(format!("{store:?}"), "MemoryStore { records: 1, capacity: 5, bytes: 23, max_bytes: 268435456, .. }");
}
