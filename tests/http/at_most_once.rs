//! Operations that must not run twice, whatever becomes of them.

use std::{future::ready, time::Duration};

use crate::faulty_bench::{Bench, End, LEASE, STORE_TIMEOUT, ask, record_key, secs};
use axum::{Router, routing::post};
use tower::ServiceExt;
use tower_idempotency::{
    AfterCrash, BackgroundTasks, IdempotencyLayer, Keep, MemoryStore, Operation, Policy, Reconciler,
    reconcile::Resolution,
    store::{Claimant, Finished, Release, Settlement, State, StoreAdmin, StoreErrorKind, StoreVerb},
};

const DAY: Duration = secs(24 * 60 * 60);

fn at_most_once(layer: IdempotencyLayer) -> IdempotencyLayer {
    layer.policy(Policy::at_most_once().lease(LEASE).retry_after(Duration::from_secs(5)))
}

/// A run that is dropped half-way, as by a crash.
async fn crash(bench: &Bench) {
    let client = bench.send(ask("k").takes(LEASE));
    bench.until(secs(1)).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_kept() {
    for status in [200, 302, 400, 401, 407, 409, 429, 500, 503] {
        // Somebody without credentials who is asked to prove who it is comes again with credentials.
        let bench = Bench::with(|layer| at_most_once(layer).unscoped());
        let first = bench.line(ask("k").ends(End::Answers(status))).await;
        assert_eq!(first, format!("{status} run 1"));
        for _ in 0..500 {
            assert_eq!(bench.line(ask("k")).await, format!("{first}, replayed"));
        }
        assert_eq!(bench.handler.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_kept_for_thirty_days() {
    let bench = Bench::with(at_most_once);
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
    bench.until(29 * DAY).await;
    assert_eq!(bench.line(ask("k")).await, "201 run 1, replayed");
    bench.until(30 * DAY + secs(1)).await;
    assert_eq!(bench.line(ask("k")).await, "201 run 2");
}

#[tokio::test(start_paused = true)]
async fn a_handler_without_an_answer_has_failed() {
    let everything = |layer: IdempotencyLayer| layer.keep(Keep::EVERYTHING);
    let never = |layer: IdempotencyLayer| layer.after_crash(AfterCrash::Never);
    let policies: [fn(IdempotencyLayer) -> IdempotencyLayer; 3] = [at_most_once, everything, never];
    for adjust in policies {
        for end in [End::Panics, End::Fails] {
            for takes in [Duration::ZERO, secs(1)] {
                let bench = Bench::with(adjust);
                match bench.send(ask("k").takes(takes).ends(end)).await {
                    Ok(told) => assert_eq!(told.line, "a handler that fails"),
                    Err(error) => assert!(error.is_panic(), "{end:?}"),
                }
                for _ in 0..3 {
                    assert_eq!(bench.line(ask("k")).await, "500 handler-failed, replayed", "{end:?}");
                }
                assert_eq!(bench.log.count("settled"), 1);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_without_its_client_has_failed() {
    let background_tasks = BackgroundTasks::new();
    let bench = Bench::with(|layer| at_most_once(layer).background_tasks(background_tasks.clone()));
    let client = bench.send(ask("k").takes(secs(2)).ends(End::Panics));
    bench.until(secs(1)).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    background_tasks.wait().await;
    assert_eq!(bench.line(ask("k")).await, "500 handler-failed, replayed");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_lapses_is_never_taken_over() {
    let bench = Bench::with(|layer| at_most_once(layer).cancel_on_disconnect());
    crash(&bench).await;
    for (at, expected) in [
        (secs(2), "409 request-in-progress, retry after 5"),
        (secs(29), "409 request-in-progress, retry after 1"),
        (LEASE, "409 outcome-unknown"),
        (LEASE * 20, "409 outcome-unknown"),
        (DAY * 2, "409 outcome-unknown"),
        (DAY * 29, "409 outcome-unknown"),
    ] {
        bench.until(at).await;
        assert_eq!(bench.line(ask("k")).await, expected, "after {at:?}");
        assert_eq!(bench.line(ask("k").body("two")).await, "422 key-reused", "after {at:?}");
    }
    assert_eq!(bench.handler.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operator_settles_what_nobody_knows() {
    let bench = Bench::with(|layer| at_most_once(layer).cancel_on_disconnect());
    crash(&bench).await;
    let settlement = Settlement::new(Claimant::random(), None, DAY);
    let key = record_key("k");
    let seen = bench.record("k").await.unwrap().claimant;
    let early = bench.store.settle_as(&key, seen, &settlement).await.unwrap();
    assert!(matches!(early, Finished::Refused(_)), "its lease has not lapsed");
    bench.until(LEASE).await;
    let settled = bench.store.settle_as(&key, seen, &settlement).await.unwrap();
    assert!(matches!(settled, Finished::Done));
    assert_eq!(bench.line(ask("k")).await, "409 response-not-retained");
    assert_eq!(bench.handler.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_operator_lets_the_next_try_run() {
    let bench = Bench::with(|layer| at_most_once(layer).cancel_on_disconnect());
    crash(&bench).await;
    bench.until(LEASE).await;
    assert_eq!(bench.line(ask("k")).await, "409 outcome-unknown");
    let seen = bench.record("k").await.unwrap().claimant;
    let release = Release::new(Claimant::random(), DAY);
    let released = bench.store.release_as(&record_key("k"), seen, &release).await.unwrap();
    assert!(matches!(released, Finished::Done));
    assert_eq!(bench.line(ask("k")).await, "201 run 2");
    assert_eq!(bench.line(ask("k")).await, "201 run 2, replayed");
    assert_eq!(bench.handler.attempts(), "1 2");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_comes_back_before_the_operator_is_recorded() {
    let bench = Bench::with(at_most_once);
    bench.faults.on(StoreVerb::Renew).hang();
    let first = bench.send(ask("k").takes(LEASE * 3));
    bench.until(LEASE * 2).await;
    assert_eq!(bench.line(ask("k")).await, "409 outcome-unknown");
    assert_eq!(first.await.unwrap().line, "201 run 1");
    assert_eq!(bench.line(ask("k")).await, "201 run 1, replayed");
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_comes_back_after_the_operator_hears_what_was_decided() {
    for (released, next, expected) in [
        (false, None, "409 response-not-retained"),
        (true, None, "409 request-in-progress, retry after 1"),
        (true, Some("201 run 2"), "201 run 2, replayed"),
    ] {
        let bench = Bench::with(at_most_once);
        bench.faults.on(StoreVerb::Renew).hang();
        let first = bench.send(ask("k").takes(LEASE * 3));
        bench.until(LEASE * 2).await;
        let (key, seen, operator) = (record_key("k"), bench.record("k").await.unwrap().claimant, Claimant::random());
        let decided = if released {
            bench.store.release_as(&key, seen, &Release::new(operator, DAY)).await
        } else {
            bench.store.settle_as(&key, seen, &Settlement::new(operator, None, DAY)).await
        };
        assert!(matches!(decided, Ok(Finished::Done)));
        if let Some(next) = next {
            assert_eq!(bench.line(ask("k")).await, next);
        }
        assert_eq!(first.await.unwrap().line, expected);
    }
}

/// A runner that cannot renew its lease is about to act when its record is released, and another one acts.
#[tokio::test(start_paused = true)]
async fn a_runner_that_asks_before_its_effect_does_not_act_beside_another() {
    let bench = Bench::with(at_most_once);
    bench.faults.on(StoreVerb::Renew).hang();
    let first = bench.send(ask("k").takes(LEASE * 3).ends(End::Acts));
    bench.until(LEASE * 2).await;
    let reconciler = Reconciler::new(bench.store.clone(), |_| ready(Resolution::Release)).grace(Duration::ZERO);
    assert_eq!(reconciler.run_once().await.unwrap().released, 1);
    assert_eq!(bench.line(ask("k").ends(End::Acts)).await, "201 run 2");
    assert_eq!(first.await.unwrap().line, "201 run 2, replayed");
    assert_eq!((bench.handler.runs(), bench.handler.acts.get()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_does_not_act_leaves_it_to_the_next_try() {
    for (takes, acts, expected) in [(LEASE / 2, 1, "201 run 1"), (LEASE, 0, "503 run 1 refrains")] {
        let bench = Bench::with(at_most_once);
        bench.faults.on(StoreVerb::Renew).hang();
        assert_eq!(bench.line(ask("k").takes(takes).ends(End::Acts)).await, expected);
        assert_eq!(bench.handler.acts.get(), acts);
        let again = bench.line(ask("k").ends(End::Acts)).await;
        assert_eq!(again, if acts == 1 { "201 run 1, replayed" } else { "201 run 2" });
        assert_eq!(bench.handler.acts.get(), 1);
    }
}

/// Nobody has looked at the lease of a process that stood still, and it is lost all the same, until it is renewed.
#[tokio::test]
async fn a_process_that_stood_still_sees_that_its_claim_may_be_lost() {
    let lease = Duration::from_millis(120);
    let handler = move |operation: Operation| async move {
        assert!(!operation.is_lost());
        std::thread::sleep(lease * 2);
        assert!(operation.is_lost());
        operation.lost().await;
        while operation.is_lost() {
            tokio::time::sleep(lease / 10).await;
        }
        "renewed"
    };
    let layer = IdempotencyLayer::new(MemoryStore::new()).policy(Policy::at_most_once().lease(lease));
    let app: Router = Router::new().route("/", post(handler)).layer(layer);
    let request = http::Request::post("/").header("idempotency-key", "k").body(axum::body::Body::empty()).unwrap();
    assert_eq!(app.oneshot(request).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_store_took_late_is_the_outcome() {
    let bench = Bench::with(at_most_once);
    for verb in [StoreVerb::Renew, StoreVerb::Settle] {
        bench.faults.on(verb).fail(StoreErrorKind::Unavailable);
    }
    assert_eq!(bench.line(ask("k").ends(End::Answers(402))).await, "402 run 1");
    bench.until(LEASE * 2).await;
    assert_eq!(bench.line(ask("k")).await, "409 outcome-unknown");
    bench.faults.heal();
    bench.until(LEASE * 2 + secs(2)).await;
    assert_eq!(bench.line(ask("k")).await, "402 run 1, replayed");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_the_store_never_took_is_unknown() {
    let bench = Bench::with(at_most_once);
    bench.faults.on(StoreVerb::Settle).fail(StoreErrorKind::Misconfigured);
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
    bench.until(LEASE).await;
    assert_eq!(bench.line(ask("k")).await, "409 outcome-unknown");
    assert_eq!(bench.handler.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_run_leaves_nothing_unknown() {
    let bench = Bench::with(at_most_once);
    bench.faults.on(StoreVerb::Claim).once().after_effect().hang();
    assert_eq!(bench.line(ask("k")).await, "503 store-unavailable, retry after 5");
    bench.until(STORE_TIMEOUT + secs(1)).await;
    assert_eq!(bench.state("k").await, Some(State::Released));
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_may_be_followed_by_a_first_run() {
    let bench = Bench::with(at_most_once);
    bench.faults.on(StoreVerb::Claim).once().after_effect().hang();
    bench.faults.on(StoreVerb::Release).fail(StoreErrorKind::Unavailable);
    assert_eq!(bench.line(ask("k")).await, "503 store-unavailable, retry after 5");
    bench.until(LEASE + secs(10)).await;
    assert_eq!(bench.line(ask("k")).await, "409 outcome-unknown");
    bench.faults.heal();
    bench.until(LEASE + secs(20)).await;
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
    assert_eq!(bench.line(ask("k")).await, "201 run 1, replayed");
    assert_eq!(bench.handler.runs(), 1);
}
