use std::collections::HashMap;

use bytes::Bytes;

use super::*;
use crate::{
    store::{Issued, Renewed, Stats},
    value::{Binding, Filter, Head, Issue, Origin, Secret, SecretNumber, State, TraceContext, Verdict, judge},
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

#[derive(Clone, PartialEq, Debug)]
struct Kept {
    state: State,
    claimant: Claimant,
    attempt: u32,
    fingerprint: Fingerprint,
    caller: Caller,
    caller_is_new: bool,
    secret: SecretNumber,
    origin: Origin,
    trace: Option<TraceContext>,
    at_most_once: bool,
    takeover: bool,
    lease_ends: u64,
    expires: u64,
    created: u64,
    settled: Option<u64>,
    payload: Option<Bytes>,
    note: Bytes,
    token: Option<(Binding, u64)>,
}

/// The rules once more, over a plain map that is searched through for everything.
#[derive(Default)]
struct Model {
    records: HashMap<u64, Kept>,
    now: u64,
}

impl Model {
    fn get(&mut self, name: u64) -> Option<&mut Kept> {
        let now = self.now;
        self.records.retain(|_, kept| kept.expires > now);
        self.records.get_mut(&name)
    }

    fn claim(&mut self, name: u64, claim: &Claim) -> Verdict {
        let now = self.now;
        let kept = self.get(name).cloned();
        let head = kept.as_ref().map(|kept| Head {
            fingerprint: kept.fingerprint,
            caller: kept.caller,
            caller_is_new: kept.caller_is_new,
            secret: kept.secret,
            origin: kept.origin,
            at_most_once: kept.at_most_once,
            takeover: kept.takeover,
            lease_ends: kept.lease_ends,
            expires: kept.expires,
            binding: kept.token.as_ref().map(|token| &token.0),
            ..Head::new(kept.state, kept.claimant, kept.attempt)
        });
        let verdict = judge(head.as_ref(), claim, now);
        if let Verdict::Grant(granted) = verdict {
            let running = Kept {
                state: State::Running,
                claimant: claim.claimant,
                attempt: granted.attempt,
                fingerprint: claim.fingerprint,
                caller: claim.caller,
                caller_is_new: granted.caller_is_new,
                secret: claim.secret,
                origin: granted.origin,
                trace: claim.trace,
                at_most_once: claim.at_most_once,
                takeover: granted.takeover,
                lease_ends: now + whole(claim.lease),
                expires: now + whole(claim.lease.max(claim.horizon)),
                created: kept.as_ref().map_or(now, |kept| kept.created),
                settled: None,
                payload: None,
                note: claim.note.clone(),
                token: kept.and_then(|kept| kept.token),
            };
            self.records.insert(name, running);
        }
        verdict
    }

    /// 0 is done, 1 is done already, 2 is refused.
    fn settle(&mut self, name: u64, seen: Option<Claimant>, settlement: &Settlement) -> u8 {
        let now = self.now;
        let own = settlement.claimant;
        let Some(kept) = self.get(name) else { return 2 };
        if !kept.ends(seen, own, now) {
            let again = kept.state == State::Settled && kept.claimant == own && seen != Some(own);
            return if again { 1 } else { 2 };
        }
        kept.state = State::Settled;
        kept.claimant = own;
        kept.settled = Some(now);
        kept.payload.clone_from(&settlement.payload);
        kept.expires = now + whole(settlement.retention);
        0
    }

    fn release(&mut self, name: u64, seen: Option<Claimant>, release: &Release) -> u8 {
        let now = self.now;
        let own = release.claimant;
        let Some(kept) = self.get(name) else { return 2 };
        if !kept.ends(seen, own, now) {
            let ended = matches!(kept.state, State::Released | State::Issued);
            return if ended && own != Claimant::NONE && kept.claimant == own && seen != Some(own) { 1 } else { 2 };
        }
        if release.undo {
            kept.attempt -= 1;
            if kept.attempt == 0 && kept.token.is_none() {
                self.records.remove(&name);
                return 0;
            }
            kept.caller = if kept.caller_is_new { Caller::NONE } else { kept.caller };
            kept.caller_is_new = false;
            if kept.attempt == 0 {
                (kept.secret, kept.origin) = (SecretNumber::NONE, Origin::NONE);
            }
        }
        kept.claimant = own;
        kept.state = if kept.token.is_some() { State::Issued } else { State::Released };
        kept.expires = kept.token.as_ref().map_or(now + whole(release.keep), |token| token.1);
        0
    }

    fn stats(&mut self) -> Stats {
        self.get(0);
        let count = |state| self.records.values().filter(|kept| kept.state == state).count() as u64;
        let lapsed = |kept: &&Kept| kept.state == State::Running && kept.lease_ends <= self.now;
        let abandoned = self.records.values().filter(lapsed).count() as u64;
        Stats {
            issued: count(State::Issued),
            running: count(State::Running) - abandoned,
            abandoned,
            settled: count(State::Settled),
            released: count(State::Released),
        }
    }
}

impl Kept {
    fn ends(&self, seen: Option<Claimant>, own: Claimant, now: u64) -> bool {
        let lapsed = seen.is_none() || self.lease_ends <= now;
        self.state == State::Running && self.claimant == seen.unwrap_or(own) && lapsed
    }

    fn check(&self, record: &Record, now: u64) {
        let since =
            |time: std::time::SystemTime| whole(time.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap());
        assert_eq!((record.state, record.claimant, record.attempt), (self.state, self.claimant, self.attempt));
        assert_eq!((record.fingerprint, record.secret, record.trace), (self.fingerprint, self.secret, self.trace));
        let callers = (record.caller, record.caller_is_new, record.origin);
        assert_eq!(callers, (self.caller, self.caller_is_new, self.origin));
        assert_eq!((record.at_most_once, record.takeover), (self.at_most_once, self.takeover));
        let lease = if self.state == State::Running { self.lease_ends.saturating_sub(now) } else { 0 };
        assert_eq!((record.lease_left, record.expires_in), (ms(lease), ms(self.expires - now)));
        let lapsed = if self.state == State::Running { now.saturating_sub(self.lease_ends) } else { 0 };
        assert_eq!(record.lapsed_for, ms(lapsed));
        assert_eq!((since(record.created), record.settled.map(since)), (self.created, self.settled));
        assert_eq!((&record.payload, &record.note), (&self.payload, &self.note));
        assert_eq!(record.binding.as_ref(), self.token.as_ref().map(|token| &token.0));
    }
}

fn whole(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}

fn finished(finished: &Finished) -> u8 {
    match finished {
        Finished::Done => 0,
        Finished::AlreadyDone => 1,
        Finished::Refused(_) => 2,
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
                let expected = self.model.settle(name, None, &settlement);
                assert_eq!(finished(&now(self.store.settle(&key, &settlement))), expected);
            }
            11..14 => {
                let release = self.release(own);
                let expected = self.model.release(name, None, &release);
                assert_eq!(finished(&now(self.store.release(&key, &release))), expected);
            }
            14 | 15 => {
                let claim = claim(self.random.span(), self.random.span());
                let claim = Claim { claimant: own, ..claim };
                let time = self.model.now;
                let kept = self.model.get(name).filter(|kept| kept.ends(None, own, time));
                let done = kept.is_some();
                if let Some(kept) = kept {
                    kept.lease_ends = time + whole(claim.lease);
                    kept.expires = time + whole(claim.lease.max(claim.horizon));
                }
                assert_eq!(now(self.store.renew(&key, &claim)) == Renewed::Done, done);
            }
            16 | 17 => {
                let issue = Issue::new(Binding::new("p", self.random.of(&[None, Some("ann")])), ms(self.random.span()));
                let exists = self.model.get(name).is_some();
                assert_eq!(now(self.store.issue(&key, &issue)) == Issued::Exists, exists);
                if !exists {
                    let expires = self.model.now + whole(issue.lifetime);
                    self.model.records.insert(name, issued(issue.binding, self.model.now, expires));
                }
            }
            18 => {
                let settlement = settlement(self.random.of(&self.claimants.clone()), self.random.span());
                let expected = self.model.settle(name, Some(own), &settlement);
                assert_eq!(finished(&now(self.store.settle_as(&key, own, &settlement))), expected);
            }
            19 => {
                let claimant = self.random.of(&self.claimants.clone());
                let release = self.release(claimant);
                let expected = self.model.release(name, Some(own), &release);
                assert_eq!(finished(&now(self.store.release_as(&key, own, &release))), expected);
            }
            20 => {
                let there = self.model.get(name).is_some();
                self.model.records.remove(&name);
                assert_eq!(now(self.store.forget(&key)), there);
            }
            21 if self.random.below(20) == 0 => {
                let before = self.store.kept() as u64;
                let purged = now(self.store.purge(usize::MAX));
                self.model.get(name);
                assert_eq!(before - purged, self.model.records.len() as u64);
                assert_eq!(self.store.kept(), self.model.records.len());
            }
            _ => {
                let span = self.random.span() / self.random.of(&[1, 1, 10]);
                self.clock.pass(span);
                self.model.now += span;
            }
        }
        self.compare(name);
    }

    /// One that has something to do with the record, most of the time.
    fn claimant(&mut self, name: u64) -> Claimant {
        let any = self.random.of(&self.claimants.clone());
        match self.model.get(name) {
            Some(kept) if self.random.below(4) > 0 => kept.claimant,
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
        let binding = self.model.get(name).and_then(|kept| kept.token.as_ref().map(|token| token.0.clone()));
        claim.issued = if self.random.below(8) == 0 { Some(Binding::new("p", None)) } else { binding };
        if let Some(secret) = self.random.of(&self.secrets.clone()) {
            claim = claim.sealed_with(&secret);
        }
        let verdict = self.model.claim(name, &claim);
        let expected = Claimed::from_verdict(verdict, || self.model.records[&name].payload.clone());
        assert_eq!(now(self.store.claim(&key(name), &claim)), expected);
    }

    fn compare(&mut self, name: u64) {
        let time = self.model.now;
        match (self.model.get(name), self.store.record(name)) {
            (Some(kept), Some(record)) => kept.check(&record, time),
            (kept, record) => assert!(kept.is_none() && record.is_none(), "{kept:?} {record:?}"),
        }
    }

    fn compare_all(&mut self) {
        assert_eq!(now(self.store.stats()), self.model.stats());
        let mut next = None;
        let mut seen = 0;
        loop {
            let page = now(self.store.list(Filter::All, next, 50));
            for entry in &page.entries {
                self.model.records[&entry.key.key().parse().unwrap()].check(&entry.record, self.model.now);
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

fn issued(binding: Binding, created: u64, expires: u64) -> Kept {
    Kept {
        state: State::Issued,
        claimant: Claimant::NONE,
        attempt: 0,
        fingerprint: Fingerprint::OFF,
        caller: Caller::NONE,
        caller_is_new: false,
        secret: SecretNumber::NONE,
        origin: Origin::NONE,
        trace: None,
        at_most_once: false,
        takeover: false,
        lease_ends: 0,
        expires,
        created,
        settled: None,
        payload: None,
        note: Bytes::new(),
        token: Some((binding, expires)),
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
        assert!(!walk.store.memory.room.has_released());
    }
}
