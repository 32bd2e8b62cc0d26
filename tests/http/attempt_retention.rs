//! How long it is remembered that an operation was tried.

use std::time::Duration;

use tower_idempotency::store::{StoreErrorKind, StoreVerb};

use crate::faulty_bench::{Bench, End, ask, secs};

const HOUR: Duration = secs(60 * 60);

/// The server's failures are remembered for the retention, since the operation may have begun; a client's mistakes for an
/// hour.
#[tokio::test(start_paused = true)]
async fn a_failure_is_remembered_for_the_retention_and_a_mistake_for_an_hour() {
    for (end, hours, attempts) in [
        (End::Answers(500), 2, "1 2"),
        (End::Answers(503), 23, "1 2"),
        (End::Answers(500), 25, "1 1"),
        (End::Panics, 2, "1 2"),
        (End::Fails, 2, "1 2"),
        (End::Answers(422), 0, "1 2"),
        (End::Answers(422), 2, "1 1"),
        (End::Answers(403), 2, "1 1"),
    ] {
        let bench = Bench::new();
        let _ = bench.send(ask("k").ends(end)).await;
        bench.until(HOUR * hours).await;
        assert_eq!(bench.line(ask("k")).await, "201 run 2");
        assert_eq!(bench.handler.attempts(), attempts, "{end:?}, {hours} hours");
    }
}

/// A short retention bounds both.
#[tokio::test(start_paused = true)]
async fn nothing_is_remembered_for_longer_than_the_retention() {
    for status in [500, 422] {
        let bench = Bench::with(|layer| layer.retention(secs(60)));
        assert_eq!(bench.line(ask("k").ends(End::Answers(status))).await, format!("{status} run 1"));
        bench.until(secs(61)).await;
        assert_eq!(bench.line(ask("k")).await, "201 run 2");
        assert_eq!(bench.handler.attempts(), "1 1", "{status}");
    }
}

/// A lapse counts as a failure of the server.
#[tokio::test(start_paused = true)]
async fn a_lapse_is_remembered_for_the_retention() {
    let bench = Bench::with(tower_idempotency::IdempotencyLayer::cancel_on_disconnect);
    let first = bench.send(ask("k").takes(HOUR));
    bench.until(secs(1)).await;
    first.abort();
    bench.until(HOUR * 2).await;
    assert_eq!(bench.line(ask("k").ends(End::Answers(503))).await, "503 run 2");
    bench.until(HOUR * 4).await;
    assert_eq!(bench.line(ask("k")).await, "201 run 3");
    assert_eq!(bench.handler.attempts(), "1 2t 3");
}

/// A claim whose answer is lost is given back, and takes nothing from what is remembered.
#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_forgets_nothing() {
    let bench = Bench::new();
    assert_eq!(bench.line(ask("k").ends(End::Answers(500))).await, "500 run 1");
    bench.faults.on(StoreVerb::Claim).once().after_effect().fail(StoreErrorKind::Unavailable);
    assert_eq!(bench.line(ask("k")).await, "503 store-unavailable, retry after 5");
    bench.until(HOUR * 2).await;
    assert_eq!(bench.line(ask("k")).await, "201 run 2");
    assert_eq!(bench.handler.attempts(), "1 3");
}
