use std::collections::HashMap;

use bytes::Bytes;

use super::*;
use crate::{
    store::{RecordSlot, Stats},
    value::{Binding, Filter, Issue, Secret, StoredRecord, TraceContext},
};

/// Numbers from a seed (splitmix64).
pub(in super::super) struct Random(pub(in super::super) u64);

impl Random {
    pub(in super::super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()].clone()
    }

    /// A length of time of any order of magnitude up to a hundred days.
    pub(in super::super) fn span(&mut self) -> u64 {
        let most = self.of(&[1, 2, 50, 4096, 300_000, 80_000_000, 8_640_000_000]);
        self.below(most + 1)
    }
}

/// The rules over a plain map that is searched through for everything.
#[derive(Default)]
struct Model {
    records: HashMap<u64, StoredRecord>,
    now: u64,
}

impl Model {
    /// Applies the rules to the record of a key.
    fn at<T>(&mut self, name: u64, method: impl FnOnce(&mut RecordSlot) -> T) -> T {
        let mut slot = RecordSlot::new(self.records.remove(&name), self.now);
        let answer = method(&mut slot);
        self.records.extend(slot.into_record().map(|record| (name, record)));
        answer
    }

    fn get(&mut self, name: u64) -> Option<&StoredRecord> {
        self.expire();
        self.records.get(&name)
    }

    fn expire(&mut self) {
        let now = self.now;
        self.records.retain(|_, record| record.expires > now);
    }

    fn stats(&mut self) -> Stats {
        self.expire();
        let mut stats = Stats::default();
        for record in self.records.values() {
            stats.count(record.state, record.lease_ends <= self.now);
        }
        stats
    }
}

/// What is compared of an outcome.
fn finished(finished: Finished) -> (&'static str, Option<Record>) {
    match finished {
        Finished::Done => ("done", None),
        Finished::AlreadyDone => ("already done", None),
        Finished::Refused(record) => ("refused", record.map(|record| *record)),
    }
}

struct Walk {
    random: Random,
    store: MemoryStore,
    clock: Manual,
    model: Model,
    claimants: Vec<Claimant>,
    secrets: Vec<Option<Secret>>,
    names: u64,
}

impl Walk {
    fn step(&mut self) {
        let name = self.random.below(self.names);
        let key = key(name);
        let own = self.claimant(name);
        match self.random.below(24) {
            0..8 => self.claim(name, own),
            8..11 => {
                let length = self.random.of(&[0, 1, 300, 4096, 4097, 9000]);
                let payload = self.random.of(&[None, Some(Bytes::from(vec![b'p'; length]))]);
                let settlement = Settlement::new(own, payload, ms(self.random.span()));
                let expected = self.model.at(name, |slot| slot.settle(&settlement));
                assert_eq!(finished(now(self.store.settle(&key, &settlement))), finished(expected));
            }
            11..14 => {
                let release = self.release(own);
                let expected = self.model.at(name, |slot| slot.release(&release));
                assert_eq!(finished(now(self.store.release(&key, &release))), finished(expected));
            }
            14 | 15 => {
                // A runner renews with the lease that it has claimed with.
                let span = self.random.span();
                let lease = self.model.get(name).map_or(span, |record| record.lease);
                let claim = Claim { claimant: own, ..claim(lease, self.random.span()) };
                let expected = self.model.at(name, |slot| slot.renew(&claim));
                assert_eq!(now(self.store.renew(&key, &claim)), expected);
            }
            16 | 17 => {
                let issue = Issue::new(Binding::new("p", self.random.of(&[None, Some("ann")])), ms(self.random.span()));
                let expected = self.model.at(name, |slot| slot.issue(&issue));
                assert_eq!(now(self.store.issue(&key, &issue)), expected);
            }
            18 => {
                let settlement = settlement(self.random.of(&self.claimants.clone()), self.random.span());
                let expected = self.model.at(name, |slot| slot.settle_as(own, &settlement));
                assert_eq!(finished(now(self.store.settle_as(&key, own, &settlement))), finished(expected));
            }
            19 => {
                let claimant = self.random.of(&self.claimants.clone());
                let release = self.release(claimant);
                let expected = self.model.at(name, |slot| slot.release_as(own, &release));
                assert_eq!(finished(now(self.store.release_as(&key, own, &release))), finished(expected));
            }
            20 => {
                let expected = self.model.at(name, RecordSlot::forget);
                assert_eq!(now(self.store.forget(&key)), expected);
            }
            21 if self.random.below(20) == 0 => {
                let before = self.store.kept() as u64;
                let purged = now(self.store.purge(usize::MAX));
                self.model.expire();
                assert_eq!(before - purged, self.model.records.len() as u64);
                assert_eq!(self.store.kept(), self.model.records.len());
            }
            _ => self.pass(),
        }
        self.compare(name);
    }

    fn pass(&mut self) {
        let span = self.random.span() / self.random.of(&[1, 1, 10]);
        self.clock.pass(span);
        self.model.now += span;
    }

    /// One that has something to do with the record, most of the time.
    fn claimant(&mut self, name: u64) -> Claimant {
        let any = self.random.of(&self.claimants.clone());
        match self.model.get(name) {
            Some(record) if self.random.below(4) > 0 => record.claimant,
            _ => any,
        }
    }

    fn release(&mut self, claimant: Claimant) -> Release {
        Release { undo: self.random.below(2) == 0, ..release(claimant, self.random.span()) }
    }

    fn claim(&mut self, name: u64, own: Claimant) {
        let mut claim = claim(self.random.span(), self.random.span());
        claim.claimant = if self.random.below(2) == 0 { own } else { self.random.of(&self.claimants.clone()) };
        claim.fingerprint = self.random.of(&[number(1), number(1), number(1), number(2)]);
        claim.caller = self.random.of(&[Caller::NONE, Caller::NONE, caller(5), caller(5), caller(6)]);
        claim.trace = self.random.of(&[None, None, Some(TraceContext::new([1; 16], [2; 8], 3))]);
        claim.at_most_once = self.random.below(8) == 0;
        claim.note = self.random.of(&[Bytes::new(), Bytes::from_static(b"note")]);
        let binding = self.model.get(name).and_then(|record| record.binding.clone());
        claim.issued = if self.random.below(8) == 0 { Some(Binding::new("p", None)) } else { binding };
        if let Some(secret) = self.random.of(&self.secrets.clone()) {
            claim = claim.sealed_with(&secret);
        }
        let expected = self.model.at(name, |slot| slot.claim(&claim));
        assert_eq!(now(self.store.claim(&key(name), &claim)), expected);
    }

    fn compare(&mut self, name: u64) {
        let time = self.model.now;
        assert_eq!(self.store.record(name), self.model.get(name).map(|record| record.read(time)));
    }

    fn compare_all(&mut self) {
        assert_eq!(now(self.store.stats()), self.model.stats());
        let mut next = None;
        let mut seen = 0;
        loop {
            let page = now(self.store.list(Filter::All, next, 50));
            for entry in &page.entries {
                let expected = &self.model.records[&entry.key.key().parse().unwrap()];
                assert_eq!(entry.record, expected.read(self.model.now));
            }
            seen += page.entries.len();
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(seen, self.model.records.len());
        assert!(self.store.kept() >= seen);
    }
}

#[test]
fn a_random_walk_agrees_with_a_plain_map() {
    for (seed, names, steps) in [(1, 3, 30_000), (2, 40, 60_000), (3, 3000, 60_000), (4, 20_000, 60_000)] {
        let (store, clock) = store();
        let claimants = (0..6).map(|number| Claimant::from_bytes([number; 16])).collect();
        let (old, new) = (Secret::new([1; 32]).unwrap(), Secret::new([2; 32]).unwrap());
        let secrets = vec![None, None, Some(old), Some(new.clone()), Some(new.accept([1; 32]).unwrap())];
        let model = Model { now: START, ..Model::default() };
        let mut walk = Walk { random: Random(seed), store, clock, model, claimants, secrets, names };
        for step in 0..steps {
            walk.step();
            if step % 1000 == 0 {
                walk.compare_all();
            }
        }
        walk.clock.pass(u64::from(u32::MAX) * 100);
        now(walk.store.purge(usize::MAX));
        assert_eq!(walk.store.kept(), 0);
    }
}
