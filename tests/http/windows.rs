//! Anti-resubmit by time: while the first request runs, or for a while after it.

use std::time::Duration;

use axum::{body::Body, http::Response};
use tower::{Layer, ServiceExt};
use tower_idempotency::{IdempotencyLayer, MemoryStore, Policy, key};

use crate::{
    common::windows::windows_hold_and_end,
    faulty_bench::{Bench, End, ask, secs},
};

fn one_at_a_time(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.policy(Policy::one_at_a_time().retry_after(secs(5)))
}

fn window(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.policy(Policy::window(secs(60)).retry_after(secs(5)))
}

#[tokio::test(start_paused = true)]
async fn one_at_a_time_holds_only_while_the_first_one_runs() {
    for end in [End::Answers(201), End::Answers(500)] {
        let bench = Bench::with(one_at_a_time);
        let first = bench.send(ask("k").takes(secs(10)).ends(end));
        bench.until(secs(9)).await;
        assert_eq!(bench.line(ask("k")).await, "409 request-in-progress, retry after 5");
        first.await.unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(bench.record("k").await.is_none(), "nothing is remembered");
        assert_eq!(bench.line(ask("k").body("another")).await, "201 run 2");
        assert_eq!(bench.handler.attempts(), "1 1");
    }
}

/// What is left of a window is counted by the clock of the system, which does not follow the paused one.
#[track_caller]
fn assert_refused_for_a_minute(line: &str) {
    let after = line.strip_prefix("409 duplicate-request, retry after ").and_then(|after| after.parse::<u64>().ok());
    assert!(after.is_some_and(|after| (55..=60).contains(&after)), "{line}");
}

#[tokio::test(start_paused = true)]
async fn a_window_refuses_whatever_the_content_is() {
    let bench = Bench::with(|layer| window(layer).key(key::json("/phone")).unscoped());
    let send = async |body| bench.line(ask("-").body(body)).await;
    assert_eq!(send(r#"{"phone":"1","text":"code 1"}"#).await, "201 run 1");
    bench.until(secs(20)).await;
    for body in [r#"{"phone":"1","text":"code 1"}"#, r#"{"phone":"1","text":"code 2"}"#] {
        assert_refused_for_a_minute(&send(body).await);
    }
    assert_eq!(send(r#"{"phone":"2","text":"code 3"}"#).await, "201 run 2");
    bench.until(secs(60)).await;
    assert_eq!(send(r#"{"phone":"1","text":"code 4"}"#).await, "201 run 3");
}

#[tokio::test(start_paused = true)]
async fn a_window_without_a_kept_answer_is_told_as_a_whole() {
    let bench = Bench::with(|layer| window(layer).response_limit(1));
    assert_eq!(bench.line(ask("phone")).await, "201 run 1");
    bench.until(secs(20)).await;
    assert_eq!(bench.line(ask("phone")).await, "409 duplicate-request, retry after 60");
}

#[tokio::test(start_paused = true)]
async fn a_window_is_its_callers_unless_all_are_one() {
    for (unscoped, expected) in [(false, 422), (true, 409)] {
        let layer = IdempotencyLayer::new(MemoryStore::new()).policy(Policy::window(secs(60)));
        let layer = if unscoped { layer.unscoped() } else { layer };
        let handler = tower::service_fn(async |_| Ok::<_, std::convert::Infallible>(Response::new(Body::empty())));
        let service = layer.layer(handler);
        let mut statuses = Vec::new();
        for caller in ["Bearer ann", "Bearer bob"] {
            let mut request = crate::common::post("/codes", "phone", caller);
            request.headers_mut().insert("authorization", caller.parse().unwrap());
            statuses.push(service.clone().oneshot(request).await.unwrap().status().as_u16());
        }
        assert_eq!(statuses, [200, expected]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_ends_the_window() {
    let bench = Bench::with(window);
    assert_eq!(bench.line(ask("phone").ends(End::Answers(503))).await, "503 run 1");
    assert_eq!(bench.line(ask("phone").body("another")).await, "201 run 2");
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_of_a_running_one_is_told_so_in_a_window() {
    let bench = Bench::with(window);
    let first = bench.send(ask("phone").takes(secs(10)));
    bench.until(secs(1)).await;
    assert_eq!(bench.line(ask("phone").body("another")).await, "409 request-in-progress, retry after 5");
    first.await.unwrap();
}

#[tokio::test]
async fn in_memory() {
    windows_hold_and_end(MemoryStore::new()).await;
}
