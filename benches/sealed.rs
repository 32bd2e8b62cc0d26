//! What sealing costs: bytes, and time for an answer that is kept and for one that is replayed.
//!
//! ```console
//! $ cargo bench --features sealed --bench sealed
//! ```
//!
//! The memory store is asked with and without a seal around it; the difference is the seal's.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tower_idempotency::{
    MemoryStore,
    store::{Claim, Claimed, RecordKey, SealedStore, SealingKeys, Settlement, Store, StoreAdmin},
};

const DAY: Duration = Duration::from_secs(86_400);
const ROUNDS: u32 = 15;
const CALLS: u32 = 400;

fn main() {
    let keys = SealingKeys::new([7; 32]).unwrap();
    println!("{:>8}  {:>8}  {:>12}  {:>12}", "answer", "kept as", "to keep it", "to replay it");
    for size in [1024, 64 * 1024] {
        let payload = Bytes::from(vec![0x5a; size]);
        let plain = || MemoryStore::builder().max_bytes(1 << 30).build();
        let bare = median(|| round(&plain(), &payload));
        let sealed = median(|| round(&SealedStore::new(plain(), keys.clone()), &payload));
        let [keep, replay] = [0, 1].map(|verb| sealed[verb].saturating_sub(bare[verb]).as_nanos());
        println!("{size:>6} B  {:>6} B  {keep:>9} ns  {replay:>9} ns", kept(&keys, &payload));
    }
}

/// How long what is kept of an answer is.
fn kept(keys: &SealingKeys, payload: &Bytes) -> usize {
    let inner = MemoryStore::new();
    round(&SealedStore::new(inner.clone(), keys.clone()), payload);
    let record = inner.inspect(&key(0)).into_ready().unwrap().unwrap().unwrap();
    record.payload.unwrap().len()
}

fn key(number: u32) -> RecordKey {
    RecordKey::new("/orders", Some("ann"), &number.to_string()).unwrap()
}

/// How long a settlement and a replay take.
fn round(store: &impl Store, payload: &Bytes) -> [Duration; 2] {
    let claims: Vec<_> = (0..CALLS).map(|number| (key(number), Claim::new(DAY, DAY))).collect();
    let ends: Vec<_> = claims.iter().map(|(_, c)| Settlement::new(c.claimant, Some(payload.clone()), DAY)).collect();
    for (key, claim) in &claims {
        store.claim(key, claim).into_ready().unwrap().unwrap();
    }
    let began = Instant::now();
    for ((key, _), end) in claims.iter().zip(&ends) {
        black_box(store.settle(key, end).into_ready().unwrap().unwrap());
    }
    let settled = began.elapsed();
    let duplicate = Claim::new(DAY, DAY);
    let began = Instant::now();
    for (key, _) in &claims {
        let answer = store.claim(key, &duplicate).into_ready().unwrap().unwrap();
        assert!(matches!(black_box(answer), Claimed::Settled(Some(_), _)));
    }
    [settled, began.elapsed()].map(|time| time / CALLS)
}

fn median(round: impl Fn() -> [Duration; 2]) -> [Duration; 2] {
    let rounds: Vec<_> = (0..ROUNDS).map(|_| round()).collect();
    [0, 1].map(|verb| {
        let mut times: Vec<_> = rounds.iter().map(|round| round[verb]).collect();
        times.sort_unstable();
        times[times.len() / 2]
    })
}
