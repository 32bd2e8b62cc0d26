//! What the layer costs in one process and one thread, beside the same Axum router without it, while few keys live and
//! while many do.

use std::time::{Duration, Instant};

use axum::{Router, routing::post};
use http::{Method, StatusCode};
use layer_benches::{
    mix,
    nothing::Nothing,
    orders::{self, ORDER, OTHER, ask, order, orders, request, time},
    quick,
    rounds::Rounds,
    row,
};
use tokio::{runtime::Runtime, task::yield_now};
use tower::layer::layer_fn;
use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, WhileRunning};

const CREATED: StatusCode = StatusCode::CREATED;

/// Requests of a round.
const COUNT: u64 = 300;

fn main() {
    let (runtime, rounds) = (orders::runtime(), if quick() { 101 } else { 401 });
    pass(&runtime, rounds);
    waiting(&runtime, rounds);
    keyed(&runtime, rounds, 1);
    keyed(&runtime, rounds, 100_000);
    keyed(&runtime, rounds, 1_000_000);
}

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

/// Requests that the layer does not protect.
fn pass(runtime: &Runtime, rounds: usize) {
    let plain = orders();
    // Axum leaves out a layer that gives back what it was given.
    let axum =
        orders().layer(layer_fn(|inner: axum::routing::Route| tower::util::MapRequest::new(inner, |request| request)));
    let nothing = orders().layer(Nothing::default());
    let (by_method, by_key) = (orders().layer(layer()), orders().layer(layer().optional()));
    let put = || request(Method::PUT, Some(7), ORDER);
    let keyless = || request(Method::POST, None, ORDER);
    // Small differences need many rounds.
    let rounds = Rounds::new()
        .case("plain", || time(runtime, &plain, CREATED, COUNT, put))
        .case("any layer", || time(runtime, &axum, CREATED, COUNT, put))
        .case("nothing", || time(runtime, &nothing, CREATED, COUNT, put))
        .case("pass", || time(runtime, &by_method, CREATED, COUNT, put))
        .case("nothing, no key", || time(runtime, &nothing, CREATED, COUNT, keyless))
        .case("pass, no key", || time(runtime, &by_key, CREATED, COUNT, keyless))
        .run(rounds * 5);
    rounds.show("not protected", "plain");
    row("pass", rounds.ratio("pass", "nothing").median);
    row("pass-no-key", rounds.ratio("pass, no key", "nothing, no key").median);
}

/// Two requests at the same time, the second of which waits for the first one's answer.
fn waiting(runtime: &Runtime, rounds: usize) {
    async fn slow(_: axum::body::Bytes) -> (StatusCode, [u8; 256]) {
        yield_now().await;
        (CREATED, [b'x'; 256])
    }
    let plain = Router::new().route("/orders", post(slow));
    let waits = plain.clone().layer(layer().while_running(WhileRunning::Wait(Duration::from_secs(5))));
    let pairs = |app: &Router, first: u64| {
        let begin = Instant::now();
        runtime.block_on(async {
            for key in first..first + COUNT {
                let (one, other) = (ask(app, order(key)), ask(app, order(key)));
                assert_eq!(tokio::join!(one, other), (CREATED, CREATED));
            }
        });
        begin.elapsed().as_nanos() as f64 / COUNT as f64
    };
    let mut keys = (0..).step_by(COUNT as usize);
    let rounds = Rounds::new()
        .case("plain", || pairs(&plain, 0))
        .case("wait", || pairs(&waits, keys.next().unwrap_or_default()))
        .run(rounds);
    rounds.show("two at once, of which one waits", "plain");
    row("wait", rounds.ratio("wait", "plain").median);
}

/// Requests with a key, while `live` keys are kept.
fn keyed(runtime: &Runtime, rounds: usize, live: u64) {
    let store = MemoryStore::builder().capacity(live as usize + 1_000_000).max_bytes(usize::MAX).build();
    let layer = IdempotencyLayer::new(store);
    let (plain, replay) = (orders(), orders().layer(layer.clone()));
    let reject = orders().layer(layer.policy(Policy::reject()));
    runtime.block_on(async {
        for key in 0..live {
            assert_eq!(ask(&replay, order(key)).await, CREATED);
        }
    });

    // Each case goes through the kept keys in an order of its own.
    let kept = |seed: u64| {
        let mut turn = seed << 32;
        move || {
            turn += 1;
            mix(turn) % live
        }
    };
    let (mut plain_keys, mut replay_keys, mut reject_keys, mut other_keys) = (kept(1), kept(2), kept(3), kept(4));
    let mut new = live..;
    let first = || {
        // Alone, so that the new records are not many.
        let alone = (live == 1).then(|| orders().layer(self::layer()));
        let app = alone.as_ref().unwrap_or(&replay);
        time(runtime, app, CREATED, COUNT, || order(new.next().unwrap_or_default()))
    };
    let rounds = Rounds::new()
        .case("plain", || time(runtime, &plain, CREATED, COUNT, || order(plain_keys())))
        .case("first", first)
        .case("replay", || time(runtime, &replay, CREATED, COUNT, || order(replay_keys())))
        .case("reject", || time(runtime, &reject, StatusCode::CONFLICT, COUNT, || order(reject_keys())))
        .case("mismatch", || {
            let other = || request(Method::POST, Some(other_keys()), OTHER);
            time(runtime, &replay, StatusCode::UNPROCESSABLE_ENTITY, COUNT, other)
        })
        .run(rounds);
    rounds.show(&format!("keys that live: {live}"), "plain");
    for name in rounds.names().skip(1) {
        row(&format!("{name}@{live}"), rounds.ratio(name, "plain").median);
    }
    // Whoever reads the table wants to know what 1 is.
    row(&format!("plain-ns@{live}"), rounds.time("plain").median);
}
