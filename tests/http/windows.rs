//! Anti-resubmit by time: while the first request runs, or for a while after it.

use std::time::Duration;

use tower_idempotency::{IdempotencyLayer, Policy};

use crate::bench::{Bench, End, ask, secs};

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

#[tokio::test(start_paused = true)]
async fn a_window_refuses_whatever_the_content_is() {
    let bench = Bench::with(window);
    assert_eq!(bench.line(ask("phone")).await, "201 run 1");
    bench.until(secs(20)).await;
    for body in ["the same", "another"] {
        let refused = bench.line(ask("phone").body(body)).await;
        assert!(refused.starts_with("409 duplicate-request, retry after "), "{refused}");
    }
    assert_eq!(bench.line(ask("another-phone")).await, "201 run 2");
    bench.until(secs(60)).await;
    assert_eq!(bench.line(ask("phone").body("another")).await, "201 run 3");
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
