//! Sequences of a store's verbs: two stores give the same answers, and hold the same records.

use std::{
    cell::Cell,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use tower_idempotency::{
    MemoryStore,
    fingerprint::Fingerprint,
    store::{
        Binding, Caller, Claim, Claimant, Claimed, Filter, Finished, Issue, Issued, Record, RecordKey, Release,
        Renewed, SecretNumber, Settlement, Stats, StoreAdmin, TraceContext,
    },
    testing::ManualClock,
};

use super::{choices::Choices, database, probe::block_on, slot_store::SlotStore};

const DAY: Duration = Duration::from_secs(86_400);
const HOUR: Duration = Duration::from_secs(3_600);
const LONGEST: usize = 24;
const LENGTHS: &[Duration] = &[
    DAY,
    Duration::ZERO,
    Duration::from_millis(1),
    Duration::from_micros(1_500),
    Duration::from_secs(1),
    Duration::from_secs(1_000 * 365 * 86_400),
];

/// The memory store beside one of a few lines on `RecordSlot`, under one clock, to the millisecond.
pub fn by_slots(bytes: &[u8]) {
    let clock = ManualClock::new();
    let memory = MemoryStore::builder().capacity(1_000).clock(clock.clone()).build();
    let slots = SlotStore::new(clock.clone());
    let drawn = Drawn { clock: Some(clock), lengths: LENGTHS };
    block_on(drawn.compare(bytes, &memory, &slots));
}

/// The memory store beside a database in memory. Nobody advances its clock: what is to lapse lasts no time at all.
pub fn by_statements(bytes: &[u8]) {
    thread_local!(static RUN: Cell<u64> = const { Cell::new(0) });
    let run = RUN.replace(RUN.get() + 1).to_string();
    let memory = MemoryStore::builder().capacity(1_000).build();
    let drawn = Drawn { clock: None, lengths: &[DAY, Duration::ZERO] };
    database::with(|database| block_on(drawn.compare(bytes, &memory, &database.namespace(&run))));
}

/// What the choices are about.
struct Drawn {
    clock: Option<ManualClock>,
    lengths: &'static [Duration],
}

#[derive(Debug)]
enum Verb {
    Inspect,
    Issue(Issue),
    Claim(Claim),
    Renew(Claim),
    Settle(Settlement),
    SettleAs(Claimant, Settlement),
    Release(Release),
    ReleaseAs(Claimant, Release),
    Forget,
    List(Filter),
    Purge,
    Advance(Duration),
}

#[derive(Debug, PartialEq)]
enum Answer {
    Nothing,
    Issued(Issued),
    Claimed(Claimed),
    Renewed(Renewed),
    Finished(Option<Box<Record>>, &'static str),
    Forgot(bool),
    Inspected(Option<Box<Record>>),
    Listed(Vec<(Vec<u8>, Record)>, Stats),
}

impl Drawn {
    async fn compare(&self, bytes: &[u8], one: &dyn StoreAdmin, other: &dyn StoreAdmin) {
        let mut choices = Choices::new(bytes);
        let keys = ["a", "b"].map(|key| RecordKey::new("/", None, key).expect("a key"));
        let mut told = Vec::new();
        for _ in 0..LONGEST {
            if choices.is_empty() {
                break;
            }
            let key = &keys[choices.below(2)];
            let verb = self.verb(&mut choices);
            told.push(format!("{} {verb:?}", key.key()));
            for verb in [verb, Verb::Inspect] {
                let (answer, expected) = (self.ask(one, key, &verb).await, self.ask(other, key, &verb).await);
                assert!(
                    answer == expected,
                    "{answer:#?}\nis not\n{expected:#?}\nof {verb:?}, after\n{}",
                    told.join("\n")
                );
                if let Verb::Advance(time) = verb {
                    self.clock.iter().for_each(|clock| clock.advance(time));
                }
            }
        }
    }

    fn verb(&self, choices: &mut Choices<'_>) -> Verb {
        match choices.below(16) {
            0 => Verb::Inspect,
            1 => Verb::Issue(Issue::new(
                binding(choices).unwrap_or_else(|| Binding::new("order", None)),
                self.length(choices),
            )),
            2..=5 => Verb::Claim(self.claim(choices)),
            6 => Verb::Renew(self.claim(choices)),
            7 | 8 => Verb::Settle(self.settlement(choices)),
            9 => Verb::SettleAs(claimant(choices), self.settlement(choices)),
            10 | 11 => Verb::Release(self.release(choices)),
            12 => Verb::ReleaseAs(claimant(choices), self.release(choices)),
            13 => Verb::List(choices.one_of(&[Filter::All, Filter::Abandoned])),
            14 if choices.flip() => Verb::Forget,
            14 => Verb::Purge,
            _ => Verb::Advance(choices.one_of(&[
                Duration::from_millis(1),
                Duration::from_micros(999),
                Duration::from_secs(1),
                Duration::from_millis(86_399_999),
                DAY,
            ])),
        }
    }

    fn length(&self, choices: &mut Choices<'_>) -> Duration {
        choices.one_of(self.lengths)
    }

    fn claim(&self, choices: &mut Choices<'_>) -> Claim {
        let mut claim = Claim::new(self.length(choices), self.length(choices));
        claim.claimant = claimant(choices);
        claim.fingerprint = choices.one_of(&[
            Fingerprint::OFF,
            Fingerprint::from_parts(1, [1; 32]),
            Fingerprint::from_parts(1, [2; 32]),
        ]);
        claim.caller = choices.one_of(&[Caller::NONE, Caller::from_parts(1, [1; 16]), Caller::from_parts(1, [2; 16])]);
        let rare = choices.below(16);
        claim.at_most_once = rare & 1 != 0;
        claim.issued = if rare & 2 != 0 { binding(choices) } else { None };
        if rare & 4 != 0 {
            claim.note = Bytes::copy_from_slice(choices.bytes(40));
            claim.trace = choices.flip().then(|| TraceContext::from_bytes([7; 25]));
        }
        // What is issued has no secret.
        if rare & 8 != 0 && claim.issued.is_none() {
            claim.secret = SecretNumber::from_u32(1);
        }
        claim
    }

    fn settlement(&self, choices: &mut Choices<'_>) -> Settlement {
        let payload = match choices.below(4) {
            0 => None,
            1 => Some(Bytes::copy_from_slice(choices.bytes(40))),
            2 => Some(Bytes::from(vec![b'x'; 500])),
            // The memory store keeps such a one in its own buffer.
            _ => Some(Bytes::from(vec![b'y'; 5_000])),
        };
        Settlement::new(claimant(choices), payload, self.length(choices))
    }

    fn release(&self, choices: &mut Choices<'_>) -> Release {
        let (by, keep) = (claimant(choices), self.length(choices));
        if choices.flip() { Release::undo(by, keep) } else { Release::new(by, keep) }
    }

    async fn ask(&self, store: &dyn StoreAdmin, key: &RecordKey, verb: &Verb) -> Answer {
        const WORKS: &str = "the store works";
        match verb {
            Verb::Inspect => {
                Answer::Inspected(store.inspect(key).await.expect(WORKS).map(|record| Box::new(self.told(record))))
            }
            Verb::Issue(issue) => Answer::Issued(store.issue(key, issue).await.expect(WORKS)),
            Verb::Claim(claim) => Answer::Claimed(match store.claim(key, claim).await.expect(WORKS) {
                Claimed::Running { holder, left } => Claimed::Running { holder, left: self.time(left) },
                claimed => claimed,
            }),
            Verb::Renew(claim) => Answer::Renewed(store.renew(key, claim).await.expect(WORKS)),
            Verb::Settle(settlement) => self.finished(store.settle(key, settlement).await.expect(WORKS)),
            Verb::SettleAs(seen, settlement) => {
                self.finished(store.settle_as(key, *seen, settlement).await.expect(WORKS))
            }
            Verb::Release(release) => self.finished(store.release(key, release).await.expect(WORKS)),
            Verb::ReleaseAs(seen, release) => self.finished(store.release_as(key, *seen, release).await.expect(WORKS)),
            Verb::Forget => Answer::Forgot(store.forget(key).await.expect(WORKS)),
            Verb::List(filter) => {
                let page = store.list(*filter, None, 10).await.expect(WORKS);
                let listed = page.entries.into_iter();
                let mut listed: Vec<_> =
                    listed.map(|entry| (entry.key.as_bytes().to_vec(), self.told(entry.record))).collect();
                listed.sort_by(|one, other| one.0.cmp(&other.0));
                Answer::Listed(listed, store.stats().await.expect(WORKS))
            }
            // Each store decides when it frees what has expired.
            Verb::Purge => {
                store.purge(10).await.expect(WORKS);
                Answer::Nothing
            }
            Verb::Advance(_) => Answer::Nothing,
        }
    }

    fn finished(&self, finished: Finished) -> Answer {
        match finished {
            Finished::Refused(record) => Answer::Finished(record.map(|record| Box::new(self.told(*record))), "refused"),
            Finished::Done => Answer::Finished(None, "done"),
            Finished::AlreadyDone => Answer::Finished(None, "already done"),
            other => panic!("{other:?}"),
        }
    }

    /// A record with times that both stores can agree on.
    fn told(&self, mut record: Record) -> Record {
        for time in [&mut record.lease, &mut record.lease_left, &mut record.lapsed_for, &mut record.expires_in] {
            *time = self.time(*time);
        }
        if self.clock.is_none() {
            record.created = SystemTime::UNIX_EPOCH;
            record.settled = record.settled.map(|_| SystemTime::UNIX_EPOCH);
        }
        record
    }

    /// To the hour, if the clocks are two.
    fn time(&self, time: Duration) -> Duration {
        if self.clock.is_some() {
            return time;
        }
        let hours = (time + HOUR / 2).as_secs() / HOUR.as_secs();
        HOUR * u32::try_from(hours).expect("it is not long")
    }
}

fn claimant(choices: &mut Choices<'_>) -> Claimant {
    Claimant::from_bytes([1 + u8::try_from(choices.below(3)).expect("a byte"); 16])
}

fn binding(choices: &mut Choices<'_>) -> Option<Binding> {
    match choices.below(3) {
        0 => None,
        1 => Some(Binding::new("order", None)),
        _ => Some(Binding::new("order", Some("ann"))),
    }
}
