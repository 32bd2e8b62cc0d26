//! What records keep is bounded in bytes as well, and nothing that counts is dropped for it.

use std::collections::HashMap;

use super::*;
use crate::{
    store::Issued,
    value::{Binding, Issue, State, StoreErrorKind, TraceContext},
};

const KIB: usize = 1024;

fn bounded(bytes: usize) -> (MemoryStore, Manual) {
    let clock = Manual::new();
    (MemoryStore::builder().max_bytes(bytes).clock(clock.clone()).build(), clock)
}

fn answer(claimant: Claimant, bytes: usize) -> Settlement {
    Settlement::new(claimant, Some(vec![b'a'; bytes].into()), DAY)
}

fn kind<T: Unpin>(answer: StoreFuture<'_, T>) -> StoreErrorKind {
    try_now(answer).map(drop).unwrap_err().kind()
}

#[test]
fn answers_beyond_the_bound_are_refused_and_none_is_dropped() {
    let (store, _) = bounded(256 * KIB);
    let mut kept = 0;
    for number in 0..500 {
        let claim = store.grant(number, 1000, 1000);
        match try_now(store.settle(&key(number), &answer(claim.claimant, 32 * KIB))) {
            Ok(Finished::Done) => kept += 1,
            Ok(other) => panic!("{other:?}"),
            Err(error) => {
                assert_eq!((error.kind(), error.is_temporary()), (StoreErrorKind::TooLarge, false));
                assert!(error.is_without_effect());
                // It still runs, and a tombstone needs no room.
                assert_eq!(store.record(number).unwrap().state, State::Running);
                let tombstone = Settlement::new(claim.claimant, None, DAY);
                assert!(matches!(now(store.settle(&key(number), &tombstone)), Finished::Done));
            }
        }
        assert!(store.bytes() <= 256 * KIB);
    }
    assert_eq!(kept, 7);
    let payloads = (0..500).filter(|number| store.record(number).unwrap().payload.is_some()).count();
    assert_eq!(payloads, 7);
}

#[test]
fn keys_and_notes_count_too() {
    let (store, clock) = bounded(10 * KIB);
    // A lease of another length than most have would count too.
    let (lease, horizon) = (30_000, 60_000);
    let noted = |length: usize| Claim { note: vec![b'n'; length].into(), ..claim(lease, horizon) };
    assert_eq!(kind(store.claim(&key("a"), &noted(10 * KIB))), StoreErrorKind::Full);
    assert_eq!(store.kept(), 0);
    now(store.claim(&key("a"), &noted(9 * KIB)));
    assert_eq!(kind(store.claim(&key("b"), &noted(KIB))), StoreErrorKind::Full);
    let mut more = 0;
    while try_now(store.claim(&key(100 + more), &claim(lease, horizon))).is_ok() {
        more += 1;
    }
    assert_eq!(more, (KIB - key("a").as_bytes().len()) / key(100).as_bytes().len());
    // A takeover may leave less, and not more.
    clock.pass(lease);
    assert_eq!(kind(store.claim(&key("a"), &noted(10 * KIB))), StoreErrorKind::Full);
    assert_eq!(now(store.claim(&key("a"), &noted(KIB))), taken_over(2));
    now(store.claim(&key("b"), &noted(7 * KIB)));
    assert_eq!(kind(store.claim(&key("c"), &noted(KIB))), StoreErrorKind::Full);
}

#[test]
fn released_and_expired_records_make_room_for_bytes() {
    let (store, clock) = bounded(100 * KIB);
    for number in 0..30 {
        let noted = Claim { note: vec![b'n'; KIB].into(), ..claim(1000, 1000) };
        now(store.claim(&key(number), &noted));
        now(store.release(&key(number), &release(noted.claimant, 100_000)));
    }
    let gone = store.grant("gone", 1000, 1000);
    now(store.settle(&key("gone"), &Settlement::new(gone.claimant, Some(vec![0; 30 * KIB].into()), ms(5))));
    clock.pass(5);
    let first = store.grant("first", 1000, 1000);
    assert!(matches!(now(store.settle(&key("first"), &answer(first.claimant, 60 * KIB))), Finished::Done));
    assert!((0..30).all(|number| store.record(number).is_some()), "what has expired goes first");
    let second = store.grant("second", 1000, 1000);
    assert!(matches!(now(store.settle(&key("second"), &answer(second.claimant, 20 * KIB))), Finished::Done));
    let left = (0..30).filter(|number| store.record(number).is_some()).count();
    assert!((15..20).contains(&left), "{left}");
    // What would not fit into an empty store drives out nothing.
    let third = store.grant("third", 1000, 1000);
    assert_eq!(kind(store.settle(&key("third"), &answer(third.claimant, 101 * KIB))), StoreErrorKind::TooLarge);
    assert_eq!((0..30).filter(|number| store.record(number).is_some()).count(), left);
    assert!(store.record("first").unwrap().payload.is_some());
}

#[test]
fn reconciliation_is_bounded_as_well() {
    let (store, _) = bounded(10 * KIB);
    let abandoned = store.grant("a", 0, 1000);
    let operator = Claimant::random();
    let too_large = answer(operator, 10 * KIB);
    assert_eq!(kind(store.settle_as(&key("a"), abandoned.claimant, &too_large)), StoreErrorKind::TooLarge);
    let settled = now(store.settle_as(&key("a"), abandoned.claimant, &answer(operator, 9 * KIB)));
    assert!(matches!(settled, Finished::Done));
}

#[test]
fn what_is_gone_at_once_needs_no_room() {
    let (store, _) = bounded(KIB);
    let claim = store.grant("a", 1000, 1000);
    let gone = Settlement::new(claim.claimant, Some(vec![0; 2 * KIB].into()), Duration::ZERO);
    assert!(matches!(now(store.settle(&key("a"), &gone)), Finished::Done));
    assert_eq!((store.kept(), store.bytes()), (0, 0));
}

/// A store that is always full, or nearly so, and what was settled in it: until when, and with how many bytes.
struct Crowded {
    store: MemoryStore,
    clock: Manual,
    random: Random,
    settled: HashMap<u64, (u64, usize)>,
}

impl Crowded {
    fn step(&mut self) {
        let (store, name) = (self.store.clone(), self.random.below(60));
        if self.random.below(8) == 0 {
            let issue = Issue::new(Binding::new("p", Some("ann")), ms(self.random.below(99)));
            let _ = try_now(store.issue(&key(name), &issue));
        }
        let claim = Claim {
            note: vec![0; usize::try_from(self.random.below(2000)).unwrap()].into(),
            caller: caller(1),
            trace: (self.random.below(2) == 0).then(|| TraceContext::new([1; 16], [1; 8], 1)),
            issued: store.record(name).and_then(|record| record.binding),
            ..claim(self.random.below(20), self.random.below(500))
        };
        if matches!(try_now(store.claim(&key(name), &claim)), Ok(Claimed::Granted(_))) {
            self.settled.remove(&name);
            self.end(name, claim.claimant);
        }
        self.clock.pass(self.random.below(5));
    }

    fn end(&mut self, name: u64, claimant: Claimant) {
        let keep = self.random.below(900);
        match self.random.below(5) {
            0 => {
                let length = usize::try_from(self.random.below(9000)).unwrap();
                let settlement = Settlement::new(claimant, Some(vec![0; length].into()), ms(keep));
                if try_now(self.store.settle(&key(name), &settlement)).is_ok() {
                    self.settled.insert(name, (self.clock.now() + keep, length));
                }
            }
            1 => drop(now(self.store.release(&key(name), &release(claimant, keep)))),
            2 => drop(now(self.store.release(&key(name), &undo(claimant, keep)))),
            3 => drop(now(self.store.forget(&key(name)))),
            _ => {}
        }
    }

    fn check(&self) {
        assert!(self.store.bytes() <= 100 * KIB);
        for (name, (until, length)) in &self.settled {
            let kept = self.store.record(name).and_then(|record| record.payload).map(|payload| payload.len());
            assert_eq!(kept.filter(|_| *until > self.clock.now()), (*until > self.clock.now()).then_some(*length));
        }
    }
}

#[test]
fn nothing_settled_is_dropped_and_every_byte_is_given_back() {
    let (store, clock) = bounded(100 * KIB);
    let mut crowded = Crowded { store, clock, random: Random(11), settled: HashMap::new() };
    for step in 0..20_000 {
        crowded.step();
        if step % 20 == 0 {
            crowded.check();
        }
    }
    let Crowded { store, clock, .. } = crowded;
    clock.pass(10_000);
    now(store.purge(usize::MAX));
    store.is_empty();
}

#[test]
fn unclaimed_tokens_hold_at_most_half_of_the_room() {
    let (store, clock) = sized(100);
    let issue = |number: u32, life| {
        try_now(store.issue(&key(number), &Issue::new(Binding::new("order", Some("ann")), ms(life))))
    };
    for number in 0..50 {
        assert_eq!(issue(number, 100 + u64::from(number)).unwrap(), Issued::Done);
    }
    assert_eq!(issue(50, 100).unwrap_err().kind(), StoreErrorKind::Full);
    // All else goes on, and a token that is claimed makes room for another one.
    store.settled("order", 1000);
    let token = || Claim { issued: Some(Binding::new("order", Some("ann"))), ..claim(10, 1000) };
    let first = token();
    now(store.claim(&key(0), &first));
    assert_eq!(issue(50, 300).unwrap(), Issued::Done);
    assert_eq!(issue(51, 300).unwrap_err().kind(), StoreErrorKind::Full);
    // What was issued before comes back all the same.
    assert!(matches!(now(store.release(&key(0), &release(first.claimant, 1))), Finished::Done));
    assert_eq!(store.record(0).unwrap().state, State::Issued);
    // What has expired holds nothing.
    clock.pass(101);
    assert_eq!(issue(52, 300).unwrap(), Issued::Done);
    assert_eq!(issue(53, 300).unwrap_err().kind(), StoreErrorKind::Full);
    for number in 0..49 {
        store.settled(format!("other{number}"), 1000);
    }
    clock.pass(10_000);
    now(store.purge(usize::MAX));
    store.is_empty();
}

#[test]
fn unclaimed_tokens_hold_at_most_half_of_the_bytes() {
    let (store, _) = bounded(10 * KIB);
    let mut issued = 0;
    let binding = Binding::new("order", Some(&"a".repeat(200)));
    while try_now(store.issue(&key(issued), &Issue::new(binding.clone(), DAY))).is_ok() {
        issued += 1;
    }
    assert!((4 * KIB..=5 * KIB).contains(&store.bytes()), "{issued} tokens of {} bytes", store.bytes());
    store.settled("order", 1000);
}

impl MemoryStore {
    fn bytes(&self) -> usize {
        self.memory.used().1
    }

    /// Nothing is counted any more.
    fn is_empty(&self) {
        assert_eq!((self.kept(), self.bytes()), (0, 0));
        assert!(self.memory.capacity.holds_no_token());
    }
}
