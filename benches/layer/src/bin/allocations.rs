//! How much more the layer allocates than the same service without it.

use std::{
    collections::VecDeque,
    convert::Infallible,
    hint::black_box,
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use axum::{Router, body::Body};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::Full;
use layer_benches::{
    nothing::Nothing,
    orders::{self, ORDER, OTHER, ask, order, orders, request},
    row,
};
use tokio::runtime::Runtime;
use tower::{Layer, Service, service_fn};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy};

const MEBIBYTE: usize = 1 << 20;

static BODY: [u8; MEBIBYTE] = [b'x'; MEBIBYTE];

fn main() {
    let runtime = orders::runtime();
    requests(&runtime);
    bodies(&runtime);
}

fn layer() -> IdempotencyLayer {
    IdempotencyLayer::new(MemoryStore::new())
}

/// Allocations and bytes of one request, as most of many have it: now and then a table grows.
fn count(runtime: &Runtime, app: &Router, status: StatusCode, request: impl Fn(u64) -> Request<Body>) -> (u64, u64) {
    let mut counts = Vec::new();
    for number in 0..101 {
        let mut request = Some(request(number));
        let counted = allocation_counter::measure(|| {
            let request = request.take().expect("it is asked once");
            assert_eq!(runtime.block_on(ask(app, request)), status);
        });
        counts.push((counted.count_total, counted.bytes_total));
    }
    counts.sort_unstable();
    counts[counts.len() / 2]
}

fn requests(runtime: &Runtime) {
    let created = StatusCode::CREATED;
    let (protected, reject) = (orders().layer(layer()), orders().layer(layer().policy(Policy::reject())));
    for app in [&protected, &reject] {
        runtime.block_on(ask(app, order(0)));
    }
    // A shard's first record makes its tables.
    (1_000..4_000).for_each(|number| assert_eq!(runtime.block_on(ask(&protected, order(number))), created));
    let put = |_| request(Method::PUT, Some(7), ORDER);
    let other = |_| request(Method::POST, Some(0), OTHER);
    let again = |_| order(0);
    let new = |number| order(number + 1);
    let counts = [
        ("plain", count(runtime, &orders(), created, again)),
        ("a layer that does nothing", count(runtime, &orders().layer(Nothing::default()), created, put)),
        ("not protected", count(runtime, &protected, created, put)),
        ("first", count(runtime, &protected, created, new)),
        ("replay", count(runtime, &protected, created, again)),
        ("reject", count(runtime, &reject, StatusCode::CONFLICT, again)),
        ("mismatch", count(runtime, &protected, StatusCode::UNPROCESSABLE_ENTITY, other)),
    ];
    let plain = counts[0].1;
    println!("{:<34}{:>12}{:>12}{:>12}{:>12}", "one request", "allocations", "more", "bytes", "more");
    let more = |count: u64, plain: u64| count.cast_signed() - plain.cast_signed();
    for (name, (allocations, bytes)) in counts {
        let (more_of_them, more_bytes) = (more(allocations, plain.0), more(bytes, plain.1));
        println!("  {name:<32}{allocations:>12}{more_of_them:>+12}{bytes:>12}{more_bytes:>+12}");
        if ["first", "replay"].contains(&name) {
            row(&format!("allocations-{name}"), more_of_them);
        }
    }

    let added = bare(layer()) - bare(tower::layer::util::Identity::new());
    println!("  {:<32}{added:>24}", "not protected, bare `service_fn`");
    row("allocations-pass", added);
}

/// Allocations of a request that is not protected around a service that makes none.
fn bare<L, R>(layer: L) -> i64
where
    L: Layer<Bare>,
    L::Service: Service<Request<Full<Bytes>>, Response = R>,
{
    let mut service = layer.layer(Bare);
    let mut request = Some(Request::put("/orders").body(Full::from(ORDER)).expect("a request"));
    let counted = allocation_counter::measure(|| {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(service.poll_ready(&mut cx).is_ready());
        let answer = pin!(service.call(request.take().expect("it is asked once")));
        assert!(black_box(answer.poll(&mut cx).is_ready()));
    });
    counted.count_total.cast_signed()
}

/// What `tower::service_fn` makes of a function, with a name.
#[derive(Clone)]
struct Bare;

impl<B> Service<Request<B>> for Bare {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut answer =
            service_fn(|_| std::future::ready(Ok(Response::new(Full::from(Bytes::from_static(ORDER.as_bytes()))))));
        answer.call(request)
    }
}

/// Large bodies: what is allocated beyond the plain router is a copy, or a part of one.
fn bodies(runtime: &Runtime) {
    let protected = orders().layer(layer());
    println!("{:<34}{:>12}{:>12}{:>12}", "bytes for a body of 1 MiB", "plain", "layered", "more");
    let shapes: [(_, _, fn() -> Body); 2] = [
        ("in one piece", "copied-whole", || Body::from(Bytes::from_static(&BODY))),
        ("in pieces of 64 KiB", "copied-pieces", || {
            Body::new(Pieces(BODY.chunks(MEBIBYTE / 16).map(Bytes::from_static).collect()))
        }),
    ];
    for (number, (shape, name, body)) in (1..).zip(shapes) {
        let new = |key: u64| request(Method::POST, Some(1000 * number + key), body());
        let [plain, layered] = [&orders(), &protected].map(|app| count(runtime, app, StatusCode::CREATED, new).1);
        let more = layered.cast_signed() - plain.cast_signed();
        println!("  {shape:<32}{plain:>12}{layered:>12}{more:>+12}");
        row(name, more);
    }
}

struct Pieces(VecDeque<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}
