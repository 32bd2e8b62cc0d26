//! Anti-resubmit by time, by the clock of whatever store.

use std::{convert::Infallible, time::Duration};

use axum::body::Body;
use http::{Request, Response, header::RETRY_AFTER};
use tokio::time::sleep;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::{
    IdempotencyLayer, Policy,
    service::RequestBody,
    store::{RecordKey, StoreAdmin},
};

const WINDOW: Duration = Duration::from_secs(2);

/// A handler that takes its time, behind the policy.
fn route<S: StoreAdmin + Clone>(
    store: &S,
    name: &'static str,
    policy: Policy,
) -> impl Service<Request<Body>, Response = Response<impl Sized>, Error = Infallible, Future: Send> + Clone {
    let handler = service_fn(async |_: Request<RequestBody<Body>>| {
        sleep(Duration::from_millis(300)).await;
        Ok::<_, Infallible>(Response::new(Body::from("done")))
    });
    IdempotencyLayer::new(store.clone()).route(name).unscoped().policy(policy).layer(handler)
}

async fn ask<R>(
    route: &(impl Service<Request<Body>, Response = Response<R>, Error = Infallible> + Clone),
    body: &'static str,
) -> (u16, Option<u64>) {
    let request = Request::post("/").header("Idempotency-Key", "k").body(Body::from(body)).unwrap();
    let Ok(answer) = route.clone().oneshot(request).await;
    let after = answer.headers().get(RETRY_AFTER).map(|after| after.to_str().unwrap().parse().unwrap());
    (answer.status().as_u16(), after)
}

/// A window refuses any content until it is over, and a request that has ended under `one_at_a_time` is not remembered.
pub(crate) async fn windows_hold_and_end<S: StoreAdmin + Clone>(store: S) {
    let window = route(&store, "window", Policy::window(WINDOW));
    assert_eq!(ask(&window, "one").await, (200, None));
    for content in ["one", "two"] {
        let (status, after) = ask(&window, content).await;
        assert!(status == 409 && after.is_some_and(|after| (1..=2).contains(&after)), "{status} {after:?}");
    }
    sleep(WINDOW + Duration::from_millis(300)).await;
    assert_eq!(ask(&window, "two").await, (200, None));

    let alone = route(&store, "alone", Policy::one_at_a_time().retry_after(Duration::from_secs(1)));
    let (first, beside) = tokio::join!(ask(&alone, "one"), async {
        sleep(Duration::from_millis(100)).await;
        ask(&alone, "one").await
    });
    assert_eq!((first, beside), ((200, None), (409, Some(1))));
    sleep(Duration::from_millis(20)).await;
    let key = RecordKey::new("alone", None, "k").unwrap();
    assert!(store.inspect(&key).await.unwrap().is_none(), "nothing is remembered");
    assert_eq!(ask(&alone, "two").await, (200, None));
}
