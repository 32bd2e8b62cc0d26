//! Two threads through one layer, beside two threads with a layer and a store each.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use axum::Router;
use layer_benches::{
    clock::processor_time,
    orders::{ask, order, orders, runtime},
    quick,
    rounds::Figure,
    row,
};
use tower_idempotency::{IdempotencyLayer, MemoryStore};

const RETENTION: Duration = Duration::from_millis(50);

/// What is counted begins when as many records expire as come.
const WARM: Duration = Duration::from_millis(150);
const COUNTED: Duration = Duration::from_millis(100);

/// Requests that are made before the clock starts.
const BATCH: u64 = 100;

fn main() {
    let shared = protected();
    let both = [shared.clone(), shared];
    let apart = [protected(), protected()];
    let plain = [orders(), orders()];
    let mut kinds =
        [("plain", &plain, Vec::new()), ("a layer each", &apart, Vec::new()), ("one layer", &both, Vec::new())];
    let keys = AtomicU64::new(0);
    for _ in 0..if quick() { 21 } else { 75 } {
        for (_, apps, runs) in &mut kinds {
            runs.push(run(&apps[..], &keys));
        }
    }
    println!("{:<44}{:>16}{:>16}", "two threads, first request and replay", "processor, ns", "a second");
    for (name, _, runs) in &kinds {
        let processor = Figure::of(runs.iter().map(|run| run.processor)).median;
        println!("  {name:<42}{processor:>16.0}{:>16.0}", Figure::of(runs.iter().map(|run| run.rate)).median);
    }
    let [_, (_, _, apart), (_, _, both)] = &kinds;
    let time = Figure::of(apart.iter().zip(both).map(|(apart, both)| apart.processor / both.processor));
    let rate = Figure::of(apart.iter().zip(both).map(|(apart, both)| both.rate / apart.rate));
    for (name, Figure { median, quartiles: [low, high] }) in [("processor time", time), ("rate", rate)] {
        println!("  one layer, of a layer each, by {name:<15}{median:>9.3}{low:>10.3} {high:.3}");
    }
    row("threads", time.median);
}

fn protected() -> Router {
    let store = MemoryStore::builder().max_bytes(usize::MAX).build();
    orders().layer(IdempotencyLayer::new(store).retention(RETENTION))
}

struct Run {
    /// Nanoseconds of processor time for a first request and its replay.
    processor: f64,
    /// How many of these in a second, of all threads together.
    rate: f64,
}

/// Sends requests to each of the routers from a thread of its own.
fn run(apps: &[Router], keys: &AtomicU64) -> Run {
    let (stop, start) = (AtomicBool::new(false), Barrier::new(apps.len()));
    let worker = |app: &Router| {
        let runtime = runtime();
        start.wait();
        let (begin, mut done, mut processor, mut wall) = (Instant::now(), 0, 0, Duration::ZERO);
        while !stop.load(Relaxed) {
            let first = keys.fetch_add(BATCH, Relaxed);
            let requests: Vec<_> = (first..first + BATCH).map(|key| (order(key), order(key))).collect();
            let counts = begin.elapsed() > WARM;
            let (on, since) = (processor_time(), Instant::now());
            runtime.block_on(async {
                for (first, again) in requests {
                    // A thread that had to stand still for so long finds nothing, which is rare.
                    ask(app, first).await;
                    ask(app, again).await;
                }
            });
            if counts {
                done += BATCH;
                processor += processor_time() - on;
                wall += since.elapsed();
            }
            if begin.elapsed() > WARM + COUNTED {
                stop.store(true, Relaxed);
            }
        }
        (done as f64, processor as f64, wall.as_secs_f64())
    };
    let of_each: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = apps.iter().map(|app| scope.spawn(|| worker(app))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let (done, processor) = of_each.iter().fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
    Run { processor: processor / done, rate: of_each.iter().map(|(done, _, wall)| done / wall).sum() }
}
