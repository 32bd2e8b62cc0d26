//! The memory store by itself: each verb, and the worst single call while a million records live and expire.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use layer_benches::{clock::processor_time, mix, quick, rounds::Rounds, row};
use tower_idempotency::{
    MemoryStore,
    store::{Claim, Claimed, Clock, RecordKey, Settlement, Store},
};

const DAY: Duration = Duration::from_secs(86_400);
const MINUTE: Duration = Duration::from_secs(60);
const MILLION: u64 = 1_000_000;
const PAYLOAD: usize = 300;

fn main() {
    verbs();
    stalls();
}

/// The memory store answers at once.
fn now<T>(answer: impl Future<Output = T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => unreachable!("the memory store does not wait"),
    }
}

fn key(number: u64) -> RecordKey {
    RecordKey::new("/orders", None, &format!("{:016x}{:016x}", mix(number), mix(!number))).expect("a key")
}

fn payload() -> Bytes {
    Bytes::from_static(&[b'x'; PAYLOAD])
}

fn settle(store: &MemoryStore, key: &RecordKey, retention: Duration) {
    let claim = Claim::new(MINUTE, retention);
    assert!(matches!(now(store.claim(key, &claim)), Ok(Claimed::Granted(_))));
    now(store.settle(key, &Settlement::new(claim.claimant, Some(payload()), retention))).expect("it is settled");
}

fn filled(records: u64) -> MemoryStore {
    let store = MemoryStore::builder().capacity(2 * MILLION as usize).max_bytes(usize::MAX).build();
    (0..records).for_each(|number| settle(&store, &key(number), DAY));
    store
}

/// Nanoseconds a verb, by how many records live.
fn verbs() {
    for live in [1_000, 100_000, MILLION] {
        let store = filled(live);
        let (mut turn, mut new) = (0, live);
        let count = 10_000;
        let per_call = |keys: Vec<RecordKey>, run: &dyn Fn(&RecordKey)| {
            let begin = Instant::now();
            keys.iter().for_each(run);
            begin.elapsed().as_nanos() as f64 / keys.len() as f64
        };
        let rounds = Rounds::new()
            .case("claim of a settled key", || {
                turn += count;
                let keys = (turn..turn + count).map(|number| key(mix(number) % live)).collect();
                per_call(keys, &|key| {
                    let settled = now(store.claim(key, &Claim::new(MINUTE, DAY)));
                    assert!(matches!(settled, Ok(Claimed::Settled(Some(_), _))));
                })
            })
            .case("claim and settle a new key", || {
                let keys = (new..new + count).map(key).collect();
                new += count;
                per_call(keys, &|key| settle(&store, key, DAY))
            })
            .run(if quick() { 7 } else { 21 });
        println!("records that live: {live}");
        for name in rounds.names() {
            println!("  {name:<42}{:>12.0} ns", rounds.time(name).median);
        }
    }
}

/// A clock that is set by hand, in milliseconds.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The worst single call of each phase, in milliseconds on the processor and on the wall.
fn stalls() {
    const PHASES: [&str; 4] = ["a million come", "they expire one by one", "all expire at once", "and again"];
    // What slows the whole machine down strikes at other calls in each run.
    let runs = if quick() { 3 } else { 7 };
    let mut worst = vec![vec![[0_u64; 2]; runs]; PHASES.len()];
    for run in 0..runs {
        let hand = Hand::default();
        hand.0.store(1_000_000, Relaxed);
        let store =
            MemoryStore::builder().capacity(2 * MILLION as usize).max_bytes(usize::MAX).clock(hand.clone()).build();
        let mut number = 0;
        for (phase, worst) in worst.iter_mut().enumerate() {
            let count = if phase < 2 { MILLION } else { MILLION / 2 };
            for _ in 0..count {
                number += 1;
                // A thousand a second, each for a thousand seconds: from the second phase on, one goes as one comes.
                hand.0.fetch_add(1, Relaxed);
                let (key, retention) = (key(number), Duration::from_secs(1_000));
                let (begin, on) = (Instant::now(), processor_time());
                settle(&store, &key, retention);
                let took = [processor_time() - on, begin.elapsed().as_nanos() as u64];
                for (worst, took) in worst[run].iter_mut().zip(took) {
                    *worst = (*worst).max(took);
                }
            }
            if phase > 0 {
                hand.0.fetch_add(10_000_000, Relaxed);
            }
        }
    }
    println!("{:<44}{:>12}{:>12}", "worst claim and settle, least of the runs", "ms busy", "ms in all");
    let mut row_figure = 0.0;
    for (phase, runs) in PHASES.iter().zip(&worst) {
        let [busy, wall] = [0, 1].map(|kind| runs.iter().map(|run| run[kind]).min().unwrap_or_default() as f64 / 1e6);
        println!("  {phase:<42}{busy:>12.3}{wall:>12.3}");
        row_figure = f64::max(row_figure, busy);
    }
    row("stall-ms", row_figure);
}
