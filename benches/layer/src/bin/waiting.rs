//! A thousand requests with one key, of which one runs and the others wait for its answer.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::{Router, extract::State, routing::post};
use http::StatusCode;
use layer_benches::{
    orders::{ask, order},
    quick,
    rounds::Figure,
    row,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::Semaphore,
    task::JoinSet,
    time::sleep,
};
use tower_idempotency::{IdempotencyLayer, MemoryStore, WhileRunning};

const REQUESTS: usize = 1_000;

/// What the handler waits for, and how often it began.
#[derive(Clone)]
struct Gate {
    open: Arc<Semaphore>,
    runs: Arc<AtomicU32>,
}

fn main() {
    let rounds = if quick() { 9 } else { 31 };
    let one = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let two = Builder::new_multi_thread().worker_threads(2).enable_time().build().expect("a runtime");
    let (mut worst, mut runs) = (0.0, 0);
    println!("{REQUESTS} requests with one key{:>20}{:>14}{:>10}", "ms, median", "ms, worst", "runs");
    for (name, runtime) in [("one thread", &one), ("two threads", &two)] {
        let results: Vec<_> = (0..rounds).map(|_| round(runtime)).collect();
        let time = Figure::of(results.iter().map(|result| result.0)).median;
        let slowest = results.iter().map(|result| result.0).fold(0.0, f64::max);
        let most = results.iter().map(|result| result.1).max().unwrap_or_default();
        println!("  {name:<42}{time:>6.1}{slowest:>14.1}{most:>10}");
        (worst, runs) = (f64::max(worst, time), runs.max(most));
    }
    row("waiting-ms", worst);
    row("waiting-runs", runs);
    memory(&one);
}

fn app(gate: &Gate) -> Router {
    async fn slow(State(gate): State<Gate>, _: axum::body::Bytes) -> (StatusCode, [u8; 256]) {
        gate.runs.fetch_add(1, Relaxed);
        gate.open.acquire().await.expect("it is never closed").forget();
        (StatusCode::CREATED, [b'x'; 256])
    }
    let layer = IdempotencyLayer::new(MemoryStore::new()).while_running(WhileRunning::Wait(Duration::from_secs(60)));
    Router::new().route("/orders", post(slow)).with_state(gate.clone()).layer(layer)
}

fn gate() -> Gate {
    Gate { open: Arc::new(Semaphore::new(0)), runs: Arc::default() }
}

/// Milliseconds from the handler's end until the last one has its answer, and how often the handler ran.
fn round(runtime: &Runtime) -> (f64, u32) {
    let gate = gate();
    let app = app(&gate);
    runtime.block_on(async {
        let mut clients = send(&app, 7);
        sleep(Duration::from_millis(50)).await;
        let end = Instant::now();
        gate.open.add_permits(1);
        while let Some(status) = clients.join_next().await {
            assert_eq!(status.expect("no panic"), StatusCode::CREATED);
        }
        (end.elapsed().as_secs_f64() * 1e3, gate.runs.load(Relaxed))
    })
}

fn send(app: &Router, key: u64) -> JoinSet<StatusCode> {
    (0..REQUESTS)
        .map(|_| {
            let app = app.clone();
            async move { ask(&app, order(key)).await }
        })
        .collect()
}

/// What a request holds while it waits, what it allocates by waiting longer, and what stays behind.
fn memory(runtime: &Runtime) {
    let gate = gate();
    let app = app(&gate);
    let (mut held, mut while_waiting, mut left) = (0, 0, 0);
    // The first round makes what all later ones use.
    for key in 0..4 {
        let mut clients = JoinSet::new();
        let mut counted =
            |run: &mut dyn FnMut(&mut JoinSet<StatusCode>)| allocation_counter::measure(|| run(&mut clients));
        let begun = counted(&mut |clients| {
            *clients = runtime.block_on(async {
                let clients = send(&app, key);
                sleep(Duration::from_millis(20)).await;
                clients
            });
        });
        let waited = counted(&mut |_| runtime.block_on(async { sleep(Duration::from_secs(2)).await }));
        let ended = counted(&mut |clients| {
            gate.open.add_permits(1);
            runtime.block_on(async { while clients.join_next().await.is_some() {} });
            *clients = JoinSet::new();
        });
        held = begun.bytes_current / REQUESTS.cast_signed() as i64;
        while_waiting = waited.bytes_current;
        left = begun.bytes_current + waited.bytes_current + ended.bytes_current;
    }
    println!("  bytes held by each that waits{held:>18}");
    println!("  bytes more after two seconds of it{while_waiting:>13}");
    println!("  bytes left behind by all{left:>23}");
    row("waiting-held", held);
    row("waiting-growth", while_waiting);
    row("waiting-left", left);
}
