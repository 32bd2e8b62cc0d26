//! Runs one path again and again, for `scripts/check-costs`, which has Valgrind count what happens in
//! [`counted`].

use std::{env, hint::black_box};

use axum::{Router, body::Body};
use http::{Method, Request, StatusCode};
use layer_benches::{
    clock::Paced,
    ideal::Ideal,
    nothing::Nothing,
    orders::{self, ORDER, ask, order, orders, request},
};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::runtime::Runtime;
use tower_idempotency::{IdempotencyLayer, MemoryStore, metrics::Metrics};

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let [case, count] = &arguments[..] else { panic!("a case and a number") };
    let count: u64 = count.parse().expect("a number");
    let layer = IdempotencyLayer::new(MemoryStore::new());
    let ideal = Ideal::new(Paced::new(), 86_400_000);
    let (app, next): (Router, fn(u64) -> Request<Body>) = match &**case {
        "plain" => (orders(), order),
        "nothing" => (orders().layer(Nothing::default()), order),
        "pass" => (orders().layer(layer), |_| request(Method::PUT, Some(0), ORDER)),
        "first" => (orders().layer(layer), order),
        "replay" => (orders().layer(layer), |_| order(0)),
        "metrics-first" => (orders().layer(layer.observer(metrics())), order),
        "metrics-replay" => (orders().layer(layer.observer(metrics())), |_| order(0)),
        "ideal-pass" => (orders().layer(ideal), |_| request(Method::PUT, Some(0), ORDER)),
        "ideal-first" => (orders().layer(ideal), order),
        "ideal-replay" => (orders().layer(ideal), |_| order(0)),
        other => panic!("no case is called {other}"),
    };
    let runtime = orders::runtime();
    // What is made once, and a table that has grown.
    (count..3 * count).for_each(|number| assert_eq!(runtime.block_on(ask(&app, next(number))), StatusCode::CREATED));
    let requests = (0..count).map(next).collect();
    counted(&runtime, &app, requests);
}

/// Returns an observer whose metrics go to the recorder of Prometheus.
fn metrics() -> Metrics {
    PrometheusBuilder::new().install_recorder().expect("a recorder");
    Metrics::new()
}

/// Valgrind finds it by its name.
#[inline(never)]
fn counted(runtime: &Runtime, app: &Router, requests: Vec<Request<Body>>) {
    runtime.block_on(async {
        for request in requests {
            black_box(ask(app, request).await);
        }
    });
}
