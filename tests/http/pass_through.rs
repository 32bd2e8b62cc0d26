//! A request that the layer does not protect costs no allocation and no clone.

use std::{
    convert::Infallible,
    future::{Future, Ready, ready},
    pin::pin,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::Empty;
use tower::{Layer, Service};
use tower_idempotency::{IdempotencyLayer, MemoryStore};

#[derive(Debug)]
struct NoClone;

impl Clone for NoClone {
    fn clone(&self) -> Self {
        panic!("cloned for a request that is not protected");
    }
}

impl<B> Service<Request<B>> for NoClone {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        ready(Ok(Response::new(Empty::new())))
    }
}

#[test]
fn no_allocation_and_no_clone() {
    let mut by_method = IdempotencyLayer::new(MemoryStore::new()).layer(NoClone);
    let mut by_key = IdempotencyLayer::new(MemoryStore::new()).key_optional().layer(NoClone);
    for (service, method) in [(&mut by_method, Method::GET), (&mut by_key, Method::POST)] {
        let request = Request::builder().method(method).uri("/").body(Empty::<Bytes>::new()).unwrap();
        let mut request = Some(request);
        let counted = allocation_counter::measure(|| {
            let mut cx = Context::from_waker(Waker::noop());
            assert!(Service::<Request<Empty<Bytes>>>::poll_ready(service, &mut cx).is_ready());
            let future = pin!(service.call(request.take().unwrap()));
            assert!(matches!(future.poll(&mut cx), Poll::Ready(Ok(_))));
        });
        assert_eq!(counted.count_total, 0);
    }
}
