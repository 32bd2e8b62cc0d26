//! Claims that are lost to another while their handler runs, and those that are not.

use std::time::Duration;

use crate::faulty_bench::{
    Bench, End, LEASE, STORE_TIMEOUT, Told, Way, Wire, ask, millis, record_key, secs, ways, when,
};
use bytes::Bytes;
use http::Response;
use tokio::task::JoinHandle;
use tower_idempotency::{
    BackgroundTasks, IdempotencyLayer, OnDuplicate, WhileRunning,
    policy::Reply,
    store::{State, StoreAdmin, StoreErrorKind, StoreVerb},
};

/// When the first one's handler ends; the claim has long lapsed by then.
const LATE: Duration = secs(50);

/// A first request whose renewals are never answered, so that its lease lapses while its handler runs.
fn stalled(bench: &Bench, end: End) -> JoinHandle<Told> {
    bench.faults.on(StoreVerb::Renew).hang();
    bench.send(ask("k").takes(LATE).ends(end))
}

/// By the time such a grant is read, another one may have taken over and answered.
#[tokio::test(start_paused = true)]
async fn a_grant_that_comes_when_its_lease_is_over_is_given_back() {
    for (stood_still, expected) in [(LEASE / 2, "201 run 1"), (LEASE, "503 store-unavailable, retry after 5")] {
        let bench = Bench::behind(|store| Wire::of_a_process_that_stands_still(store, stood_still), |layer| layer);
        assert_eq!(bench.line(ask("k")).await, expected);
        bench.until(bench.elapsed() + secs(1)).await;
        let replayed = expected == "201 run 1";
        assert_eq!(bench.state("k").await, Some(if replayed { State::Settled } else { State::Released }));
        assert_eq!(bench.line(ask("k")).await, if replayed { "201 run 1, replayed" } else { "201 run 1" });
    }
}

fn same(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer
}

fn reject(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.on_duplicate(OnDuplicate::Reject)
}

fn respond(layer: IdempotencyLayer) -> IdempotencyLayer {
    let reply = |status, text: &'static str| {
        Reply::fixed(Response::builder().status(status).body(Bytes::from_static(text.as_bytes())).unwrap())
    };
    layer
        .on_duplicate(OnDuplicate::Respond(reply(200, "success")))
        .while_running(WhileRunning::Respond(reply(503, "fail")))
}

type Adjust = fn(IdempotencyLayer) -> IdempotencyLayer;

#[tokio::test(start_paused = true)]
async fn who_is_overtaken_is_told_what_the_record_says() {
    let cases: [(Adjust, Duration, u16, &str); 10] = [
        (same, secs(5), 201, "201 run 2, replayed"),
        (same, secs(5), 206, "409 response-not-retained"),
        (same, secs(5), 500, "409 request-in-progress, retry after 1"),
        (same, LATE, 201, "409 request-in-progress, retry after 5"),
        (reject, secs(5), 201, "409 duplicate-request"),
        (reject, secs(5), 500, "409 request-in-progress, retry after 1"),
        (reject, LATE, 201, "409 request-in-progress, retry after 5"),
        (respond, secs(5), 201, "200 success"),
        (respond, secs(5), 500, "503 fail, retry after 1"),
        (respond, LATE, 201, "503 fail, retry after 5"),
    ];
    for (adjust, second_takes, status, expected) in cases {
        // Whatever the first one's own answer is, and whether or not a renewal has shown it before.
        for end in [End::Answers(201), End::Answers(500), End::Answers(206), End::Fails] {
            for heals in [false, true] {
                let bench = Bench::with(adjust);
                let first = stalled(&bench, end);
                bench.until(LEASE + secs(1)).await;
                let second = bench.send(ask("k").takes(second_takes).ends(End::Answers(status)));
                bench.until(LEASE + secs(2)).await;
                if heals {
                    bench.faults.heal();
                }
                let told = first.await.unwrap();
                assert_eq!((&*told.line, told.at), (expected, LATE), "{end:?}, {second_takes:?}, {status}");
                second.await.unwrap();
                assert_eq!((bench.handler.attempts(), bench.log.count("lost: 1")), ("1 2t".to_owned(), 1));
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_winners_answer_stays() {
    for end in [End::Answers(201), End::Answers(500), End::Fails] {
        let bench = Bench::new();
        let first = stalled(&bench, end);
        bench.until(LEASE + secs(1)).await;
        assert_eq!(bench.line(ask("k").takes(secs(5))).await, "201 run 2");
        assert_eq!(first.await.unwrap().line, "201 run 2, replayed");
        assert_eq!(bench.line(ask("k")).await, "201 run 2, replayed", "{end:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_has_gone_says_nothing() {
    for end in [End::Answers(201), End::Answers(500)] {
        for next in [None, Some((secs(5), 201)), Some((secs(5), 500)), Some((LATE, 201))] {
            let bench = Bench::new();
            let first = stalled(&bench, end);
            bench.until(secs(1)).await;
            bench.store.forget(&record_key("k")).await.unwrap();
            let other = next.map(|(takes, status)| {
                bench.send(ask("k").body("another request").takes(takes).ends(End::Answers(status)))
            });
            assert_eq!(first.await.unwrap().line, "409 request-in-progress, retry after 1", "{end:?} {next:?}");
            if let Some(other) = other {
                assert!(other.await.unwrap().line.ends_with("run 2"), "{end:?} {next:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_lost_while_the_store_is_away_is_not_answered_by_its_handler() {
    let background_tasks = BackgroundTasks::new();
    let bench = Bench::with(|layer| layer.background_tasks(background_tasks.clone()));
    let first = bench.send(ask("k").takes(LATE));
    bench.until(secs(1)).await;
    bench.store.forget(&record_key("k")).await.unwrap();
    bench.until(LEASE).await;
    assert_eq!(bench.log.count("lost: 1"), 1, "the first renewal has told it");
    bench.faults.on_all().fail(StoreErrorKind::Unavailable);
    let told = first.await.unwrap();
    assert_eq!(told.line, "409 request-in-progress, retry after 1");
    assert!(told.at <= LATE + STORE_TIMEOUT);
    bench.faults.heal();
    background_tasks.wait().await;
    assert_eq!(bench.log.count("lost: 1"), 1, "it is told once");
    assert_eq!(bench.state("k").await, None);
}

#[tokio::test(start_paused = true)]
async fn the_handler_hears_that_its_lease_has_run_out_before_another_can_have_it() {
    for (way, after_effect) in ways() {
        if after_effect {
            continue;
        }
        for lease in [secs(1), secs(10), LEASE] {
            let bench = Bench::with(|layer| layer.lease(lease));
            way.befall(bench.faults.on(StoreVerb::Renew));
            bench.send(ask("k").takes(lease * 2)).await.unwrap();
            assert_eq!(bench.lost(), [(1, lease)], "{way:?}, {lease:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_hears_of_a_loss_with_the_next_renewal() {
    let bench = Bench::new();
    let first = bench.send(ask("k").takes(LEASE));
    bench.until(secs(1)).await;
    bench.store.forget(&record_key("k")).await.unwrap();
    first.await.unwrap();
    assert_eq!(bench.lost(), [(1, LEASE / 3)]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_shorter_than_the_lease_does_no_harm() {
    let unavailable = Way::Fails(StoreErrorKind::Unavailable);
    for (way, back) in [(unavailable, secs(28)), (Way::Hangs, secs(20)), (Way::Late(secs(7)), secs(20))] {
        let bench = Bench::new();
        let first = bench.send(ask("k").takes(LEASE * 3));
        bench.until(secs(1)).await;
        way.befall(bench.faults.on_all());
        bench.until(back).await;
        bench.faults.heal();
        for later in 0..40 {
            bench.until(LEASE + millis(10) + secs(later)).await;
            assert_eq!(bench.line(ask("k")).await, "409 request-in-progress, retry after 5", "{way:?}");
        }
        assert_eq!(first.await.unwrap().line, "201 run 1");
        assert_eq!(bench.lost(), [], "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_lapsed_and_that_nobody_took_goes_on() {
    let bench = Bench::new();
    let first = stalled(&bench, End::Answers(201));
    bench.until(LEASE + secs(10)).await;
    assert!(bench.record("k").await.unwrap().is_abandoned());
    bench.faults.heal();
    bench.until(LEASE + secs(15)).await;
    assert!(!bench.record("k").await.unwrap().is_abandoned());
    assert_eq!(bench.line(ask("k")).await, "409 request-in-progress, retry after 5");
    assert_eq!(first.await.unwrap().line, "201 run 1");
    assert_eq!(bench.line(ask("k")).await, "201 run 1, replayed");
}

#[tokio::test(start_paused = true)]
async fn an_ending_whose_answer_was_lost_is_one() {
    // With a pause so long that a renewal falls between the tries, and finds the claim ended.
    for (end, verb, first, next) in [
        (End::Answers(201), StoreVerb::Settle, "201 run 1", "201 run 1, replayed"),
        (End::Answers(500), StoreVerb::Release, "500 run 1", "201 run 2"),
    ] {
        for (way, _) in ways().filter(|(way, after_effect)| !way.is_permanent() && *after_effect) {
            for lease in [millis(30), LEASE] {
                let bench = Bench::with(|layer| layer.lease(lease));
                way.befall(when(bench.faults.on(verb).times(3), true));
                assert_eq!(bench.line(ask("k").ends(end)).await, first, "{way:?}");
                bench.until(STORE_TIMEOUT * 5).await;
                assert_eq!(bench.log.count("lost: 1"), 0, "{way:?}");
                let recorded = if verb == StoreVerb::Settle { "settled" } else { "released" };
                assert_eq!(bench.log.count(recorded), 1, "{way:?}");
                if lease < LEASE {
                    assert!(bench.faults.calls(StoreVerb::Renew) > 0, "a renewal came between: {way:?}");
                }
                assert_eq!(bench.line(ask("k")).await, next, "{way:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_renewed_three_times_within_its_length() {
    for (takes, renewals) in [
        (Duration::ZERO, 0),
        (millis(9_999), 0),
        (millis(10_001), 1),
        (millis(29_999), 2),
        (LEASE * 10 + millis(1), 30),
    ] {
        let bench = Bench::new();
        assert_eq!(bench.line(ask("k").takes(takes)).await, "201 run 1");
        assert_eq!(bench.faults.calls(StoreVerb::Renew), renewals, "{takes:?}");
        bench.until(takes + LEASE * 2).await;
        assert_eq!(bench.faults.calls(StoreVerb::Renew), renewals, "none after the end");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_of_many_leases_stays_the_only_one() {
    for renewals_take in [Duration::ZERO, secs(4)] {
        let bench = Bench::new();
        bench.faults.on(StoreVerb::Renew).delay(renewals_take);
        let first = bench.send(ask("k").takes(LEASE * 10));
        for third in 1..30 {
            bench.until(LEASE / 3 * third).await;
            assert_eq!(bench.line(ask("k")).await, "409 request-in-progress, retry after 5");
        }
        assert_eq!(first.await.unwrap().line, "201 run 1");
        assert_eq!(bench.line(ask("k")).await, "201 run 1, replayed");
        assert_eq!((bench.handler.attempts(), bench.lost().len()), ("1".to_owned(), 0));
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_counted_over_takeovers_and_failures() {
    let bench = Bench::with(IdempotencyLayer::cancel_on_disconnect);
    for run in 0..3 {
        let client = bench.send(ask("k").takes(LEASE));
        bench.until((LEASE + secs(1)) * run + secs(1)).await;
        client.abort();
        bench.until((LEASE + secs(1)) * (run + 1)).await;
    }
    assert_eq!(bench.line(ask("k").ends(End::Answers(500))).await, "500 run 4");
    assert_eq!(bench.line(ask("k")).await, "201 run 5");
    assert_eq!(bench.handler.attempts(), "1 2t 3t 4t 5");
}

#[tokio::test(start_paused = true)]
async fn only_the_same_request_takes_over() {
    let bench = Bench::with(IdempotencyLayer::cancel_on_disconnect);
    let client = bench.send(ask("k").takes(LEASE));
    bench.until(secs(1)).await;
    client.abort();
    bench.until(LEASE * 2).await;
    assert_eq!(bench.line(ask("k").body("two")).await, "422 key-reused");
    assert_eq!(bench.line(ask("k")).await, "201 run 2");
}
