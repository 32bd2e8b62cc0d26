//! What the layer costs, in one process and one thread: the same Axum router with and without it, in alternating rounds,
//! so that what else the machine does falls on all alike. Read the ratios, not the times.
//!
//! ```console
//! $ cargo bench --bench overhead
//! ```

use std::{hint::black_box, time::Instant};

use axum::{Router, body::Body, http::Request, routing::post};
use http::{Method, StatusCode};
use http_body_util::BodyExt;
use tokio::runtime::{Builder, Runtime};
use tower::{Layer, Service, layer::layer_fn};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy};

const ROUNDS: u32 = 15;
const REQUESTS: u32 = 4_000;

const JSON: &str = r#"{"amount":100,"currency":"eur"}"#;
const OTHER: &str = r#"{"amount":200,"currency":"eur"}"#;

/// One way to ask one router.
struct Case {
    name: &'static str,
    app: Router,
    request: fn(u32) -> Request<Body>,
    /// Nanoseconds a request, a round each.
    times: Vec<f64>,
}

impl Case {
    fn new(name: &'static str, app: Router, request: fn(u32) -> Request<Body>) -> Self {
        Self { name, app, request, times: Vec::new() }
    }

    fn ask(&mut self, runtime: &Runtime, requests: Vec<Request<Body>>) {
        runtime.block_on(async {
            for request in requests {
                let Ok(answer) = self.app.call(request).await;
                black_box(answer.into_body().collect().await.is_ok());
            }
        });
    }

    fn round(&mut self, runtime: &Runtime, round: u32) {
        let requests: Vec<_> = (0..REQUESTS).map(|n| (self.request)(round * REQUESTS + n)).collect();
        let start = Instant::now();
        self.ask(runtime, requests);
        self.times.push(start.elapsed().as_secs_f64() * 1e9 / f64::from(REQUESTS));
    }

    fn allocations(&mut self, runtime: &Runtime) -> u64 {
        let mut request = Some(vec![(self.request)(u32::MAX)]);
        allocation_counter::measure(|| self.ask(runtime, request.take().unwrap_or_default())).count_total
    }

    fn median(&mut self) -> f64 {
        self.times.sort_by(f64::total_cmp);
        self.times[self.times.len() / 2]
    }
}

fn request(method: Method, key: u32, body: &'static str) -> Request<Body> {
    let request = Request::builder().method(method).uri("/orders").header("content-type", "application/json");
    request.header("idempotency-key", format!("{key:032x}")).body(Body::from(body)).expect("a request")
}

fn first(n: u32) -> Request<Body> {
    request(Method::POST, n, JSON)
}

fn again(_: u32) -> Request<Body> {
    request(Method::POST, 7, JSON)
}

fn changed(_: u32) -> Request<Body> {
    request(Method::POST, 7, OTHER)
}

fn unprotected(n: u32) -> Request<Body> {
    request(Method::PUT, n, JSON)
}

fn router() -> Router {
    async fn order(_: axum::body::Bytes) -> (StatusCode, [u8; 256]) {
        (StatusCode::CREATED, [b'x'; 256])
    }
    Router::new().route("/orders", post(order).put(order))
}

/// A layer of the same place that does nothing.
fn nothing<S>() -> impl Layer<S, Service = S> + Clone {
    layer_fn(|inner| inner)
}

fn main() {
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let layer = || IdempotencyLayer::new(MemoryStore::new());
    let reject = layer().policy(Policy::reject());
    let mut cases = [
        Case::new("plain", router(), first),
        Case::new("a layer that does nothing", router().layer(nothing()), first),
        Case::new("not protected", router().layer(layer()), unprotected),
        Case::new("first request", router().layer(layer()), first),
        Case::new("replay", router().layer(layer()), again),
        Case::new("rejected duplicate", router().layer(reject), again),
        Case::new("another request's key", router().layer(layer()), changed),
    ];
    // The duplicates need something to be duplicates of.
    for case in &mut cases {
        case.ask(&runtime, vec![request(Method::POST, 7, JSON)]);
    }
    for round in 1..=ROUNDS {
        for case in &mut cases {
            case.round(&runtime, round);
        }
    }
    let plain = cases[0].median();
    println!("{:<28}{:>10}{:>10}{:>14}", "", "ns", "ratio", "allocations");
    for case in &mut cases {
        let (median, allocations) = (case.median(), case.allocations(&runtime));
        println!("{:<28}{median:>10.0}{:>10.2}{allocations:>14}", case.name, median / plain);
    }
}
