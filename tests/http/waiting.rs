//! Duplicates that wait for the request that runs.

use std::time::Duration;

use crate::faulty_bench::{Bench, End, LEASE, STORE_TIMEOUT, Told, Way, ask, millis, secs, ways, when};
use bytes::Bytes;
use http::Response;
use tokio::task::JoinHandle;
use tower_idempotency::{
    AfterCrash, BackgroundTasks, IdempotencyLayer, OnDuplicate, WhileRunning,
    policy::Reply,
    store::{StoreErrorKind, StoreVerb},
};

fn patient(patience: Duration) -> impl FnOnce(IdempotencyLayer) -> IdempotencyLayer {
    move |layer| layer.while_running(WhileRunning::Wait(patience))
}

/// Returns what clients received, each line with how many received it and when.
async fn told(clients: impl IntoIterator<Item = JoinHandle<Told>>) -> Vec<(usize, String, Duration)> {
    let mut told: Vec<(usize, String, Duration)> = Vec::new();
    for client in clients {
        let Told { line, at } = client.await.expect("no panic");
        match told.iter_mut().find(|(_, other, when)| *other == line && *when == at) {
            Some((count, ..)) => *count += 1,
            None => told.push((1, line, at)),
        }
    }
    told.sort_unstable_by_key(|&(count, _, at)| (at, count));
    told
}

fn heard(count: usize, line: &str, at: Duration) -> (usize, String, Duration) {
    (count, line.to_owned(), at)
}

#[tokio::test(start_paused = true)]
async fn a_thousand_duplicates_are_one_run() {
    let bench = Bench::with(patient(secs(5)));
    let clients: Vec<_> = (0..1000).map(|_| bench.send(ask("k").takes(secs(2)))).collect();
    let expected = [heard(1, "201 run 1", secs(2)), heard(999, "201 run 1, replayed", secs(2))];
    assert_eq!(told(clients).await, expected);
    assert_eq!(bench.handler.runs(), 1);
    assert!(bench.faults.calls(StoreVerb::Claim) <= 1 + 2 * 999, "{}", bench.faults.calls(StoreVerb::Claim));
    assert_eq!(bench.log.count("replayed"), 999);
}

/// Duplicates that find no room for their bodies are refused at once.
#[tokio::test(start_paused = true)]
async fn the_bodies_of_those_that_wait_are_bounded() {
    let body: &'static str = "x".repeat(1024).leak();
    let bench = Bench::with(|layer| patient(secs(5))(layer).waiting_body_limit(64 * 1024));
    let first = bench.send(ask("k").body(body).takes(secs(2)));
    bench.until(secs(1)).await;
    let clients: Vec<_> = (0..300).map(|_| bench.send(ask("k").body(body))).collect();
    let expected =
        [heard(300 - 64, "409 request-in-progress, retry after 5", secs(1)), heard(64, "201 run 1, replayed", secs(2))];
    assert_eq!(told(clients).await, expected);
    assert_eq!(first.await.unwrap().line, "201 run 1");
    // The room was given back.
    let again: Vec<_> = (0..2).map(|_| bench.send(ask("other").body(body).takes(secs(1)))).collect();
    assert_eq!(told(again).await.len(), 2);
}

/// Without room, a duplicate receives at once what it would receive at the end of its wait.
#[tokio::test(start_paused = true)]
async fn without_room_the_reply_of_ones_own_comes_at_once() {
    let mut busy = Response::new(Bytes::from_static(b"busy"));
    *busy.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let reply = WhileRunning::WaitThenRespond(secs(10), Reply::fixed(busy));
    let bench = Bench::with(|layer| layer.while_running(reply).waiting_body_limit(2));
    let first = bench.send(ask("k").takes(secs(2)));
    tokio::task::yield_now().await;
    assert_eq!(told([bench.send(ask("k"))]).await, [heard(1, "503 busy, retry after 5", Duration::ZERO)]);
    assert_eq!(first.await.unwrap().line, "201 run 1");
}

#[tokio::test(start_paused = true)]
async fn one_of_those_that_wait_runs_next() {
    for (end, first) in [(End::Answers(503), "503 run 1"), (End::Fails, "a handler that fails")] {
        let bench = Bench::with(patient(secs(5)));
        let mut clients = vec![bench.send(ask("k").takes(secs(1)).ends(end))];
        bench.until(millis(500)).await;
        clients.extend((0..100).map(|_| bench.send(ask("k").takes(secs(1)))));
        let expected =
            [heard(1, first, secs(1)), heard(1, "201 run 2", secs(2)), heard(99, "201 run 2, replayed", secs(2))];
        assert_eq!(told(clients).await, expected);
        assert_eq!(bench.handler.attempts(), "1 2");
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_lets_the_next_one_run() {
    let bench = Bench::with(patient(secs(5)));
    let first = bench.send(ask("k").takes(secs(1)).ends(End::Panics));
    bench.until(millis(500)).await;
    let clients: Vec<_> = (0..3).map(|_| bench.send(ask("k"))).collect();
    assert_eq!(told(clients).await, [heard(1, "201 run 2", secs(1)), heard(2, "201 run 2, replayed", secs(1))]);
    assert!(first.await.unwrap_err().is_panic());
}

#[tokio::test(start_paused = true)]
async fn each_failure_lets_one_run_and_nobody_is_passed_over() {
    let bench = Bench::with(patient(secs(60)));
    let clients: Vec<_> = (0..20).map(|_| bench.send(ask("k").takes(secs(1)).ends(End::Answers(500)))).collect();
    let expected: Vec<_> = (1..=20).map(|run| heard(1, &format!("500 run {run}"), secs(run))).collect();
    assert_eq!(told(clients).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_lapses_is_taken_over_by_one_of_those_that_wait() {
    let bench = Bench::with(|layer| patient(LEASE * 2)(layer.cancel_on_disconnect()));
    let first = bench.send(ask("k").takes(LEASE));
    bench.until(secs(1)).await;
    first.abort();
    bench.until(secs(2)).await;
    let clients: Vec<_> = (0..50).map(|_| bench.send(ask("k").takes(secs(1)))).collect();
    let end = LEASE + secs(1);
    assert_eq!(told(clients).await, [heard(1, "201 run 2", end), heard(49, "201 run 2, replayed", end)]);
    assert_eq!(bench.handler.attempts(), "1 2t");
}

#[tokio::test(start_paused = true)]
async fn at_most_once_a_claim_that_lapses_ends_the_waiting() {
    let bench = Bench::with(|layer| patient(LEASE * 2)(layer.cancel_on_disconnect().after_crash(AfterCrash::Never)));
    let first = bench.send(ask("k").takes(LEASE));
    bench.until(secs(1)).await;
    first.abort();
    let clients: Vec<_> = (0..50).map(|_| bench.send(ask("k"))).collect();
    assert_eq!(told(clients).await, [heard(50, "409 outcome-unknown", LEASE)]);
}

#[tokio::test(start_paused = true)]
async fn patience_ends() {
    for (first_takes, patience, expected) in [
        (secs(10), secs(3), "409 request-in-progress, retry after 5"),
        (secs(10), Duration::ZERO, "409 request-in-progress, retry after 5"),
        (LEASE * 5, LEASE * 3, "409 request-in-progress, retry after 5"),
        (secs(10), secs(10) + millis(1), "201 run 1, replayed"),
    ] {
        let bench = Bench::with(patient(patience));
        let first = bench.send(ask("k").takes(first_takes));
        tokio::task::yield_now().await;
        let told = bench.told(ask("k")).await;
        assert_eq!((&*told.line, told.at), (expected, patience.min(first_takes)));
        assert_eq!(first.await.unwrap().line, "201 run 1");
    }
}

#[tokio::test(start_paused = true)]
async fn patience_can_end_shortly_before_the_lease() {
    let bench = Bench::with(|layer| patient(millis(28_500))(layer.cancel_on_disconnect()));
    let first = bench.send(ask("k").takes(LEASE));
    tokio::task::yield_now().await;
    first.abort();
    let told = bench.told(ask("k")).await;
    assert_eq!((&*told.line, told.at), ("409 request-in-progress, retry after 2", millis(28_500)));
}

#[tokio::test(start_paused = true)]
async fn another_request_hears_at_once_that_the_key_is_taken() {
    let bench = Bench::with(patient(secs(5)));
    let first = bench.send(ask("k").takes(secs(2)));
    bench.until(secs(1)).await;
    let told = bench.told(ask("k").body("two")).await;
    assert_eq!((&*told.line, told.at), ("422 key-reused", secs(1)));
    assert_eq!(first.await.unwrap().line, "201 run 1");
}

#[tokio::test(start_paused = true)]
async fn another_request_may_take_the_key_that_a_failure_freed() {
    let bench = Bench::with(patient(secs(5)));
    let first = bench.send(ask("k").takes(secs(1)).ends(End::Answers(500)));
    let gate = bench.faults.on(StoreVerb::Claim).skip(2).hold();
    bench.until(millis(500)).await;
    let waiting = bench.send(ask("k"));
    first.await.unwrap();
    gate.reached(1).await;
    bench.faults.heal();
    assert_eq!(bench.line(ask("k").body("corrected").takes(secs(1))).await, "201 run 2");
    gate.open();
    assert_eq!(waiting.await.unwrap().line, "422 key-reused");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_it_waits_leaves_nothing() {
    let background_tasks = BackgroundTasks::new();
    let bench = Bench::with(|layer| patient(secs(5))(layer.background_tasks(background_tasks.clone())));
    let first = bench.send(ask("k").takes(secs(2)).ends(End::Answers(500)));
    bench.until(millis(500)).await;
    let clients: Vec<_> = (0..10).map(|_| bench.send(ask("k"))).collect();
    bench.until(secs(1)).await;
    bench.log.take();
    for client in clients {
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
    }
    assert_eq!(background_tasks.count(), 0);
    assert_eq!(first.await.unwrap().line, "500 run 1");
    assert_eq!(bench.log.count("waited: cancelled"), 10);
    assert_eq!(bench.log.take().last().map(String::as_str), Some("released"));
    assert_eq!(bench.line(ask("k")).await, "201 run 2", "nobody who left has run");
    assert_eq!(bench.faults.calls(StoreVerb::Release), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_waited_at_is_asked_again() {
    for (way, after_effect) in ways() {
        let bench = Bench::with(patient(secs(20)));
        way.befall(when(bench.faults.on(StoreVerb::Changed), after_effect));
        let first = bench.send(ask("k").takes(secs(8)));
        tokio::task::yield_now().await;
        let told = bench.told(ask("k")).await;
        let patience = match way {
            Way::Fails(_) if !after_effect => secs(9),
            _ => secs(20),
        };
        assert_eq!(told.line, "201 run 1, replayed", "{way:?}, after its effect: {after_effect}");
        assert!(told.at <= patience, "{way:?}, after its effect: {after_effect}: {:?}", told.at);
        assert_eq!(first.await.unwrap().line, "201 run 1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_be_waited_at_holds_nobody_beyond_patience() {
    for (way, after_effect) in ways() {
        let bench = Bench::with(patient(secs(10)));
        way.befall(when(bench.faults.on(StoreVerb::Changed), after_effect));
        let _first = bench.send(ask("k").takes(LEASE));
        tokio::task::yield_now().await;
        let told = bench.told(ask("k")).await;
        assert_eq!((&*told.line, told.at), ("409 request-in-progress, retry after 5", secs(10)), "{way:?}");
        assert!(bench.faults.calls(StoreVerb::Claim) <= 20, "{way:?}: {}", bench.faults.calls(StoreVerb::Claim));
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_after_the_waiting_is_told_within_the_store_timeout() {
    let bench = Bench::with(patient(secs(20)));
    let first = bench.send(ask("k").takes(secs(2)));
    bench.until(secs(1)).await;
    let waiting = bench.send(ask("k"));
    tokio::task::yield_now().await;
    bench.faults.on(StoreVerb::Claim).hang();
    let told = waiting.await.unwrap();
    assert_eq!((&*told.line, told.at), ("503 store-unavailable, retry after 5", secs(2) + STORE_TIMEOUT));
    assert_eq!(first.await.unwrap().line, "201 run 1");
    assert_eq!(bench.log.count("claim failed: Timeout"), 1);
    bench.faults.on(StoreVerb::Claim).fail(StoreErrorKind::Unavailable);
    assert_eq!(bench.line(ask("k")).await, "503 store-unavailable, retry after 5");
}

#[tokio::test(start_paused = true)]
async fn who_waits_does_not_poll() {
    for (takes, claims) in [(secs(1), 2), (secs(29), 2), (LEASE * 10, 20)] {
        let bench = Bench::with(patient(LEASE * 20));
        let first = bench.send(ask("k").takes(takes));
        tokio::task::yield_now().await;
        assert_eq!(bench.line(ask("k")).await, "201 run 1, replayed");
        first.await.unwrap();
        // The first one's own claim does not count.
        let calls = bench.faults.calls(StoreVerb::Claim) - 1;
        assert!(calls <= claims, "{calls} claims in {takes:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waited_gets_what_duplicates_get() {
    let done = Reply::fixed(Response::new(Bytes::from_static(b"success")));
    for (on_duplicate, expected) in
        [(OnDuplicate::Reject, "409 duplicate-request"), (OnDuplicate::Respond(done), "200 success")]
    {
        let bench = Bench::with(|layer| patient(secs(5))(layer.on_duplicate(on_duplicate)));
        let clients: Vec<_> = (0..3).map(|_| bench.send(ask("k").takes(secs(1)))).collect();
        assert_eq!(told(clients).await, [heard(1, "201 run 1", secs(1)), heard(2, expected, secs(1))]);
    }
}

#[tokio::test(start_paused = true)]
async fn replies_of_ones_own() {
    let reply = |retry_after: Option<&str>| {
        let response = Response::builder().status(503);
        let response = retry_after.into_iter().fold(response, |response, it| response.header("retry-after", it));
        Reply::fixed(response.body(Bytes::from_static(b"fail")).unwrap())
    };
    let done = Reply::from_fn(|duplicate| Response::new(Bytes::from(format!("{} is done", duplicate.key().key()))));
    for (own, expected) in [(None, "503 fail, retry after 5"), (Some("17"), "503 fail, retry after 17")] {
        let bench = Bench::with(|layer| {
            layer.while_running(WhileRunning::Respond(reply(own))).on_duplicate(OnDuplicate::Respond(done.clone()))
        });
        let first = bench.send(ask("k").takes(secs(2)));
        bench.until(secs(1)).await;
        let told = bench.told(ask("k")).await;
        assert_eq!((&*told.line, told.at), (expected, secs(1)));
        assert_eq!(bench.line(ask("k").body("two")).await, "422 key-reused");
        assert_eq!(first.await.unwrap().line, "201 run 1");
        assert_eq!(bench.line(ask("k")).await, "200 k is done");
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_may_end_in_a_reply_of_ones_own() {
    let mut busy = Response::new(Bytes::from_static(b"busy"));
    *busy.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let bench = Bench::with(|layer| layer.while_running(WhileRunning::WaitThenRespond(secs(10), Reply::fixed(busy))));
    // One that ends in time is waited for.
    let first = bench.send(ask("k").takes(secs(2)));
    let clients = [first, bench.send(ask("k"))];
    assert_eq!(told(clients).await, [heard(1, "201 run 1", secs(2)), heard(1, "201 run 1, replayed", secs(2))]);
    // One that does not.
    let first = bench.send(ask("slow").takes(secs(12)));
    let clients = [bench.send(ask("slow")), first];
    let expected = [heard(1, "503 busy, retry after 5", secs(12)), heard(1, "201 run 2", secs(14))];
    assert_eq!(told(clients).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_fails_open_does_not_run_beside_a_run_that_is_known() {
    let bench = Bench::with(|layer| patient(secs(20))(layer).fail_open());
    let first = bench.send(ask("k").takes(secs(2)));
    bench.until(secs(1)).await;
    let waiting = bench.send(ask("k"));
    tokio::task::yield_now().await;
    bench.faults.on(StoreVerb::Claim).hang();
    assert_eq!(waiting.await.unwrap().line, "409 request-in-progress, retry after 5");
    assert_eq!(first.await.unwrap().line, "201 run 1");
}

/// However many wait for a key, one of them asks the store whether the lease was renewed.
#[tokio::test(start_paused = true)]
async fn a_crowd_that_waits_asks_the_store_as_one() {
    let bench = Bench::with(|layer| patient(secs(60))(layer.lease(secs(3))));
    let first = bench.send(ask("k").takes(secs(30)));
    tokio::task::yield_now().await;
    let clients: Vec<_> = (0..3_000).map(|_| bench.send(ask("k"))).collect();
    bench.until(secs(5)).await;
    let before = bench.faults.calls(StoreVerb::Claim);
    bench.until(secs(15)).await;
    let asked = bench.faults.calls(StoreVerb::Claim) - before;
    assert!((1..=10).contains(&asked), "{asked} claims in ten seconds");
    assert_eq!(told(clients).await, [heard(3_000, "201 run 1, replayed", secs(30))]);
    assert_eq!(first.await.unwrap().line, "201 run 1");
}

/// The waiter that asks for all may leave before it has an answer; another one asks then.
#[tokio::test(start_paused = true)]
async fn one_that_asks_for_all_may_leave() {
    let bench = Bench::with(|layer| patient(LEASE * 3)(layer.cancel_on_disconnect()));
    let first = bench.send(ask("k").takes(LEASE * 9));
    tokio::task::yield_now().await;
    let clients: Vec<_> = (0..5).map(|_| bench.send(ask("k"))).collect();
    bench.until(secs(1)).await;
    first.abort();
    // Who asks first once the lease has lapsed is held up.
    let gate = bench.faults.on(StoreVerb::Claim).once().hold();
    gate.reached(1).await;
    let mut clients = clients;
    let mut left = 0;
    for client in &clients {
        // Which one it is does not matter: all of them but one leave.
        if left < 4 {
            client.abort();
            left += 1;
        }
    }
    let last = clients.pop().unwrap();
    gate.open();
    assert!(["201 run 2", "201 run 2, replayed"].contains(&&*last.await.unwrap().line));
}
