//! What the layer costs in one process and one thread, while few keys live and while a million do. Each case takes turns
//! with the plain router alone: further ones would push its code out of the caches.

use std::time::Duration;

use axum::{Router, body::Body};
use http::{Method, Request, StatusCode};
use layer_benches::{
    clock::{Paced, processor_time},
    ideal::Ideal,
    mix,
    nothing::Nothing,
    orders::{self, ORDER, OTHER, ask, order, orders, request, time, time_each},
    quick,
    rounds::{Figure, Rounds},
    row,
};
use tokio::{runtime::Runtime, task::yield_now};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, WhileRunning};

const CREATED: StatusCode = StatusCode::CREATED;

/// Requests of a round.
const COUNT: u64 = 300;

/// Records that live while first requests come and as many records expire.
const FEW: u64 = 128;
const MILLION: u64 = 1_000_000;

fn main() {
    let bench = Bench { runtime: orders::runtime(), rounds: if quick() { 151 } else { 601 } };
    println!("{:<28}{:>8}{:>8}{:>9}{:>17}{:>9}{:>9}", "", "ns", "more", "of plain", "quartiles", "nothing", "ideal");
    // Noise in it would be in all that is compared with it.
    let nothing = bench.beside_plain(&orders().layer(Nothing::default()), CREATED, || order(0));
    show("nothing", nothing, nothing, None);
    for live in [1, MILLION] {
        bench.keyed(live, nothing);
    }
    bench.pass();
    bench.refused();
    bench.waiting();
}

struct Bench {
    runtime: Runtime,
    rounds: usize,
}

/// A case beside plain: as multiple of it, and nanoseconds more.
#[derive(Clone, Copy)]
struct Beside {
    nanos: f64,
    ratio: Figure,
    excess: f64,
}

fn show(name: &str, case: Beside, nothing: Beside, ideal: Option<Beside>) {
    let Beside { nanos, ratio: Figure { median, quartiles: [low, high] }, excess } = case;
    let of_nothing = median / nothing.ratio.median;
    print!("  {name:<26}{nanos:>8.0}{excess:>8.0}{median:>9.3}{low:>10.3} {high:.3}{of_nothing:>9.3}");
    println!("{}", ideal.map(|ideal| format!("{:>9.3}", median / ideal.ratio.median)).unwrap_or_default());
    row(name, median);
    row(&format!("{name}/excess"), excess);
    row(&format!("{name}/nothing"), of_nothing);
}

impl Bench {
    fn beside_plain(&self, app: &Router, status: StatusCode, next: impl FnMut() -> Request<Body>) -> Beside {
        self.beside_plain_each(app, status, next, || ())
    }

    fn beside_plain_each(
        &self,
        app: &Router,
        status: StatusCode,
        mut next: impl FnMut() -> Request<Body>,
        before: impl Fn(),
    ) -> Beside {
        let (plain, clock, mut turn) = (orders(), Paced::new(), 0);
        let mut number = || {
            turn += 1;
            order(turn)
        };
        let rounds = Rounds::new()
            .case("plain", || time_each(&self.runtime, &plain, CREATED, COUNT, &mut number, || clock.tick()))
            .case("case", || time_each(&self.runtime, app, status, COUNT, &mut next, &before))
            .run(self.rounds);
        Beside {
            nanos: rounds.time("case").median,
            ratio: rounds.ratio("case", "plain"),
            excess: rounds.excess("case", "plain").median,
        }
    }

    /// First requests and replays, of the layer and of the ideal one, while `live` keys are kept.
    fn keyed(&self, live: u64, nothing: Beside) {
        let product = self.measure(live, |clock, retention| {
            let store = MemoryStore::builder().capacity(2 * MILLION as usize).max_bytes(usize::MAX).clock(clock);
            orders().layer(IdempotencyLayer::new(store.build()).retention(retention))
        });
        let ideal =
            self.measure(live, |clock, retention| orders().layer(Ideal::new(clock, retention.as_millis() as u64)));
        for ((name, case), (_, ideal)) in product.into_iter().zip(ideal) {
            show(&format!("ideal-{name}@{live}"), ideal, nothing, None);
            show(&format!("{name}@{live}"), case, nothing, Some(ideal));
        }
    }

    fn measure(&self, live: u64, protect: impl Fn(Paced, Duration) -> Router) -> [(&'static str, Beside); 2] {
        let clock = Paced::new();
        let kept = live.max(FEW);
        let app = protect(clock.clone(), Paced::TICK * (kept as u32));
        self.runtime.block_on(async {
            for key in 0..kept {
                clock.tick();
                assert_eq!(ask(&app, order(key)).await, CREATED);
            }
        });
        // Time stands still meanwhile. Of few, it is always the last.
        let mut turn = 0;
        let kept_key = || {
            turn += 1;
            order(kept - 1 - mix(turn) % live.min(kept - 1))
        };
        let replay = self.beside_plain(&app, CREATED, kept_key);
        // One expires as one comes.
        let mut new = kept..;
        let first = self.beside_plain_each(&app, CREATED, || order(new.next().unwrap_or_default()), || clock.tick());
        [("replay", replay), ("first", first)]
    }

    /// Requests that the layer does not protect, beside a layer that does nothing. The differences are small.
    fn pass(&self) {
        let nothing = orders().layer(Nothing::default());
        let ideal = orders().layer(Ideal::new(Paced::new(), 1));
        let layer = IdempotencyLayer::new(MemoryStore::new());
        let (by_method, by_key) = (orders().layer(layer.clone()), orders().layer(layer.key_optional()));
        let put: fn() -> Request<Body> = || request(Method::PUT, Some(7), ORDER);
        let no_key: fn() -> Request<Body> = || request(Method::POST, None, ORDER);
        println!("{:<28}{:>8}{:>8}{:>9}{:>17}", "beside nothing", "ns", "more", "of it", "quartiles");
        for (name, app, next) in
            [("pass", &by_method, put), ("pass-no-key", &by_key, no_key), ("ideal-pass", &ideal, put)]
        {
            let rounds = Rounds::new()
                .case("nothing", || time(&self.runtime, &nothing, CREATED, COUNT, next))
                .case("case", || time(&self.runtime, app, CREATED, COUNT, next))
                .run(5 * self.rounds);
            let (nanos, excess) = (rounds.time("case").median, rounds.excess("case", "nothing").median);
            let Figure { median, quartiles: [low, high] } = rounds.ratio("case", "nothing");
            println!("  {name:<26}{nanos:>8.0}{excess:>8.0}{median:>9.3}{low:>10.3} {high:.3}");
            row(name, median);
        }
    }

    /// Duplicates that are answered without an answer that was kept.
    fn refused(&self) {
        let layer = IdempotencyLayer::new(MemoryStore::new());
        let reject = orders().layer(layer.clone().policy(Policy::reject()));
        let other = orders().layer(layer);
        for app in [&reject, &other] {
            assert_eq!(self.runtime.block_on(ask(app, order(0))), CREATED);
        }
        println!("{:<28}{:>8}{:>8}{:>9}{:>17}", "refused, beside plain", "ns", "more", "of it", "quartiles");
        let changed = || request(Method::POST, Some(0), OTHER);
        let reject = self.beside_plain(&reject, StatusCode::CONFLICT, || order(0));
        let mismatch = self.beside_plain(&other, StatusCode::UNPROCESSABLE_ENTITY, changed);
        for (name, case) in [("reject", reject), ("mismatch", mismatch)] {
            let Beside { nanos, ratio: Figure { median, quartiles: [low, high] }, excess } = case;
            println!("  {name:<26}{nanos:>8.0}{excess:>8.0}{median:>9.3}{low:>10.3} {high:.3}");
        }
    }

    /// Two requests at the same time, the second of which waits for the first one's answer.
    fn waiting(&self) {
        async fn slow(_: axum::body::Bytes) -> (StatusCode, [u8; 256]) {
            yield_now().await;
            (CREATED, [b'x'; 256])
        }
        let plain = Router::new().route("/orders", axum::routing::post(slow));
        let layer = IdempotencyLayer::new(MemoryStore::new()).while_running(WhileRunning::Wait(Duration::from_secs(5)));
        let waits = plain.clone().layer(layer);
        let pairs = |app: &Router, first: u64| {
            let begin = processor_time();
            self.runtime.block_on(async {
                for key in first..first + COUNT {
                    let (one, other) = (ask(app, order(key)), ask(app, order(key)));
                    assert_eq!(tokio::join!(one, other), (CREATED, CREATED));
                }
            });
            (processor_time() - begin) as f64 / COUNT as f64
        };
        let mut keys = (0..).step_by(COUNT as usize);
        let rounds = Rounds::new()
            .case("plain", || pairs(&plain, 0))
            .case("one waits", || pairs(&waits, keys.next().unwrap_or_default()))
            .run(self.rounds / 2);
        rounds.show("two at once", "plain");
    }
}
