//! A random walk: a store, however it writes its records, answers and keeps what the rules say.

use std::{collections::HashMap, time::Duration};

use bytes::Bytes;
use tower_idempotency::{
    fingerprint::Fingerprint,
    store::{
        Binding, Caller, Claim, Claimant, Claimed, Finished, Issue, Record, RecordKey, RecordSlot, Release,
        SecretNumber, Settlement, State, StoreAdmin, StoredRecord,
    },
};

/// Times are over at once or long after the walk, so that the clock of the store decides nothing.
const TIMES: [Duration; 4] = [Duration::ZERO, LONG, LONG, LONG];
const LONG: Duration = Duration::from_secs(60 * 60);
const NOW: u64 = 1_795_960_123_457;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ mixed >> 31) % end as u64).unwrap()
    }

    fn of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

/// Walks over a few keys, several times, each time in a namespace of its own.
pub(crate) async fn agrees_with_the_rules<S: StoreAdmin>(namespace: impl Fn(&str) -> S) {
    for seed in 0..4 {
        let store = namespace(&format!("walk_{seed}"));
        let mut walk = Walk { random: Random(seed), records: HashMap::new() };
        for step in 0..500 {
            walk.step(&store, &format!("seed {seed}, step {step}")).await;
        }
    }
}

struct Walk {
    random: Random,
    records: HashMap<RecordKey, StoredRecord>,
}

impl Walk {
    async fn step(&mut self, store: &impl StoreAdmin, at: &str) {
        let key = RecordKey::new("/walk", None, &self.random.below(5).to_string()).unwrap();
        let (own, other) = (self.claimant(&key), self.claimant(&key));
        match self.random.below(16) {
            0..6 => {
                let claim = self.claim(&key, own);
                let expected = self.at(&key, |slot| slot.claim(&claim));
                match (store.claim(&key, &claim).await.unwrap(), expected) {
                    (Claimed::Running { holder, .. }, Claimed::Running { holder: expected, .. }) => {
                        assert_eq!(holder, expected, "{at}: {claim:?}");
                    }
                    (claimed, expected) => assert_eq!(claimed, expected, "{at}: {claim:?}"),
                }
            }
            6 | 7 => {
                let settlement = self.settlement(own);
                let expected = self.at(&key, |slot| slot.settle(&settlement));
                same(at, store.settle(&key, &settlement).await.unwrap(), expected);
            }
            8 | 9 => {
                let release = self.release(own);
                let expected = self.at(&key, |slot| slot.release(&release));
                same(at, store.release(&key, &release).await.unwrap(), expected);
            }
            10 => {
                let claim = self.claim(&key, own);
                let expected = self.at(&key, |slot| slot.renew(&claim));
                assert_eq!(store.renew(&key, &claim).await.unwrap(), expected, "{at}");
            }
            11 => {
                let issue = Issue::new(Binding::new("p", self.random.of(&[None, Some("ann")])), LONG);
                let expected = self.at(&key, |slot| slot.issue(&issue));
                assert_eq!(store.issue(&key, &issue).await.unwrap(), expected, "{at}");
            }
            12 | 13 => {
                let settlement = self.settlement(other);
                let expected = self.at(&key, |slot| slot.settle_as(own, &settlement));
                same(at, store.settle_as(&key, own, &settlement).await.unwrap(), expected);
            }
            14 => {
                let release = self.release(other);
                let expected = self.at(&key, |slot| slot.release_as(own, &release));
                same(at, store.release_as(&key, own, &release).await.unwrap(), expected);
            }
            _ => {
                let expected = self.at(&key, RecordSlot::forget);
                assert_eq!(store.forget(&key).await.unwrap(), expected, "{at}");
            }
        }
        let expected = self.records.get(&key).map(|record| record.read(NOW));
        same_record(at, store.inspect(&key).await.unwrap().as_ref(), expected.as_ref());
    }

    fn at<T>(&mut self, key: &RecordKey, rule: impl FnOnce(&mut RecordSlot) -> T) -> T {
        let mut slot = RecordSlot::new(self.records.remove(key), NOW);
        let answer = rule(&mut slot);
        self.records.extend(slot.into_record().map(|record| (key.clone(), record)));
        answer
    }

    /// The record's claimant, most of the time.
    fn claimant(&mut self, key: &RecordKey) -> Claimant {
        let any = Claimant::from_bytes([self.random.of(&[1, 2, 3, 4]); 16]);
        match self.records.get(key) {
            Some(record) if self.random.below(3) > 0 && record.claimant != Claimant::NONE => record.claimant,
            _ => any,
        }
    }

    fn claim(&mut self, key: &RecordKey, claimant: Claimant) -> Claim {
        let random = &mut self.random;
        let mut claim = Claim::new(random.of(&TIMES), LONG);
        claim.claimant = if random.below(2) == 0 { claimant } else { Claimant::random() };
        claim.fingerprint = Fingerprint::from_parts(8, [random.of(&[1, 1, 1, 2]); 32]);
        let anns = Caller::from_parts(1, [1; 16]);
        claim.caller = random.of(&[Caller::NONE, Caller::NONE, anns, Caller::from_parts(1, [2; 16])]);
        claim.secret = SecretNumber::from_u32(random.of(&[0, 0, 0, 0, 0, 7]));
        claim.at_most_once = random.below(8) == 0;
        claim.note = random.of(&[Bytes::new(), Bytes::from_static(b"note")]);
        let binding = self.records.get(key).and_then(|record| record.binding.clone());
        claim.issued = if random.below(8) == 0 { Some(Binding::new("p", None)) } else { binding };
        claim
    }

    fn settlement(&mut self, claimant: Claimant) -> Settlement {
        let payload = self.random.of(&[None, Some(Bytes::new()), Some(Bytes::from_static(b"kept"))]);
        Settlement::new(claimant, payload, self.random.of(&TIMES))
    }

    fn release(&mut self, claimant: Claimant) -> Release {
        let keep = self.random.of(&TIMES);
        if self.random.below(2) == 0 { Release::new(claimant, keep) } else { Release::undo(claimant, keep) }
    }
}

#[track_caller]
fn same(at: &str, got: Finished, expected: Finished) {
    match (got, expected) {
        (Finished::Done, Finished::Done) | (Finished::AlreadyDone, Finished::AlreadyDone) => {}
        (Finished::Refused(got), Finished::Refused(expected)) => same_record(at, got.as_deref(), expected.as_deref()),
        (got, expected) => panic!("{at}: expected {expected:?}, got {got:?}"),
    }
}

/// All but the times, and what an issued record need not keep of the claims before.
#[track_caller]
fn same_record(at: &str, got: Option<&Record>, expected: Option<&Record>) {
    let ends = |record: &Record| (record.state, record.claimant, record.attempt, record.is_abandoned());
    let callers = |record: &Record| (record.caller, record.caller_is_new, record.secret, record.origin);
    let kept = |record: &Record| (record.payload.clone(), record.binding.clone());
    let claims = |record: &Record| {
        let claim = (record.fingerprint, record.at_most_once, record.takeover, record.note.clone());
        (record.state != State::Issued).then_some(claim)
    };
    assert_eq!(got.map(ends), expected.map(ends), "{at}");
    assert_eq!(got.map(callers), expected.map(callers), "{at}: {got:?}, {expected:?}");
    assert_eq!(got.map(kept), expected.map(kept), "{at}");
    assert_eq!(got.map(claims), expected.map(claims), "{at}");
}
