//! What a settled record takes: how much larger a process of its own is with a million of them.

use std::{
    env, fs,
    future::Future,
    pin::pin,
    process::Command,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::StatusCode;
use layer_benches::{
    mix,
    orders::{self, ask, order, orders},
    row,
};
use tower_idempotency::{
    IdempotencyLayer, MemoryStore,
    store::{Claim, RecordKey, Settlement, Store},
};

const MILLION: u64 = 1_000_000;
const PAYLOAD: usize = 300;

fn main() {
    match env::args().nth(1).as_deref() {
        Some("store") => println!("{}", each(fill_store)),
        Some("layer") => println!("{}", each(fill_layer)),
        _ => {
            let bare = key(0).as_bytes().len() + PAYLOAD;
            let store = alone("store");
            println!("bytes a record: {store:.0}, of which key and payload are {bare}");
            row("record-bytes", store - bare as f64);
            // With an answer in the form in which it is kept.
            println!("bytes a record behind the layer: {:.0}, of which key and body are {}", alone("layer"), 32 + 256);
        }
    }
}

/// A process that nothing else has used the memory of.
fn alone(what: &str) -> f64 {
    let this = env::current_exe().expect("a file");
    let answer = Command::new(this).arg(what).output().expect("it runs again").stdout;
    String::from_utf8_lossy(&answer).trim().parse().expect("a number")
}

fn each(fill: fn(&MemoryStore)) -> f64 {
    let store = MemoryStore::builder().max_bytes(usize::MAX).build();
    let before = resident();
    fill(&store);
    (resident() - before) / MILLION as f64
}

/// What the process holds in memory, in bytes.
fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") * 1024.0
}

fn key(number: u64) -> RecordKey {
    RecordKey::new("/orders", None, &format!("{:016x}{:016x}", mix(number), mix(!number))).expect("a key")
}

fn fill_store(store: &MemoryStore) {
    let (minute, day) = (Duration::from_secs(60), Duration::from_secs(86_400));
    for number in 0..MILLION {
        let (key, claim) = (key(number), Claim::new(minute, day));
        now(store.claim(&key, &claim));
        now(store.settle(&key, &Settlement::new(claim.claimant, Some(Bytes::from(vec![b'x'; PAYLOAD])), day)));
    }
}

/// The memory store answers at once.
fn now<T>(answer: impl Future<Output = Result<T, tower_idempotency::StoreError>>) {
    let answer = pin!(answer).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(answer, Poll::Ready(Ok(_))));
}

fn fill_layer(store: &MemoryStore) {
    let app = orders().layer(IdempotencyLayer::new(store.clone()));
    orders::runtime().block_on(async {
        for number in 0..MILLION {
            assert_eq!(ask(&app, order(number)).await, StatusCode::CREATED);
        }
    });
}
