//! The size of the future of a request, for `scripts/check-costs`: of the layer around a service that has no size.

use std::{convert::Infallible, future::Ready};

use axum::body::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use layer_benches::{clock::Paced, ideal::Ideal, nothing::Nothing};
use tower::{Layer, Service};
use tower_idempotency::{IdempotencyLayer, MemoryStore};

fn main() {
    println!("nothing\t{}", size(&Nothing::default()));
    println!("layer\t{}", size(&IdempotencyLayer::new(MemoryStore::new())));
    println!("ideal\t{}", size(&Ideal::new(Paced::new(), 1)));
}

fn size<L>(layer: &L) -> usize
where
    L: Layer<Empty>,
    L::Service: Service<Request<Full<Bytes>>>,
{
    size_of_val(&layer.layer(Empty).call(Request::post("/").body(Full::default()).expect("a request")))
}

#[derive(Clone)]
struct Empty;

impl<B> Service<Request<B>> for Empty {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        std::future::ready(Ok(Response::default()))
    }
}
