//! A store that is away when a request comes: what clients receive, when, and what is left behind.

use std::time::Duration;

use crate::faulty_bench::{Bench, LEASE, STORE_TIMEOUT, Way, Wire, ask, millis, secs, ways, when};
use tokio::time::sleep;
use tower_idempotency::{
    BackgroundTasks, IdempotencyLayer, Policy, WhileRunning,
    store::{State, StoreErrorKind, StoreVerb},
};

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_is_refused() {
    for (way, after_effect) in ways() {
        let bench = Bench::new();
        way.befall(when(bench.faults.on(StoreVerb::Claim), after_effect));
        let told = bench.told(ask("k")).await;
        assert_eq!((&*told.line, told.at), ("503 store-unavailable, retry after 5", way.held()), "{way:?}");
        assert_eq!(bench.handler.runs(), 0, "{way:?}");

        bench.faults.heal();
        sleep(secs(1)).await;
        assert!(bench.is_free("k").await, "{way:?}, after its effect: {after_effect}");
        assert_eq!(bench.line(ask("k")).await, "201 run 1", "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_fails_is_let_through_where_a_route_says_so() {
    let full = (Way::Fails(StoreErrorKind::Full), false);
    let away = ways().filter(|(way, _)| !matches!(way, Way::Fails(StoreErrorKind::Corrupt)));
    for ((way, after_effect), when_full) in away.flat_map(|way| [(way, false), (way, true)]).chain([(full, true)]) {
        let open = if when_full { IdempotencyLayer::fail_open_when_full } else { IdempotencyLayer::fail_open };
        let bench = Bench::with(open);
        way.befall(when(bench.faults.on(StoreVerb::Claim), after_effect));
        let told = bench.told(ask("k").takes(secs(1))).await;
        assert_eq!((&*told.line, told.at), ("201 run 1", way.held() + secs(1)), "{way:?}");
        assert_eq!(bench.handler.attempts(), "-", "without an `Operation`: {way:?}");

        bench.faults.heal();
        sleep(secs(1)).await;
        assert!(bench.is_free("k").await, "{way:?}, after its effect: {after_effect}");
        assert_eq!(bench.line(ask("k")).await, "201 run 2", "{way:?}");
        assert_eq!(bench.line(ask("k")).await, "201 run 2, replayed", "{way:?}");
    }
}

/// A record that cannot be read may say that the operation was done.
#[tokio::test(start_paused = true)]
async fn what_is_no_outage_refuses_however_open_the_layer_is() {
    for (kind, refused) in [
        (StoreErrorKind::Corrupt, "503 store-unavailable, retry after 5"),
        (StoreErrorKind::Invalid, "503 store-unavailable, retry after 5"),
        (StoreErrorKind::TooLarge, "413 body-too-large"),
    ] {
        for layer in [|layer| layer, IdempotencyLayer::fail_open, IdempotencyLayer::fail_open_when_full] {
            let bench = Bench::with(layer);
            bench.faults.on(StoreVerb::Claim).once().fail(kind);
            assert_eq!(bench.line(ask("k")).await, refused, "{kind:?}");
            assert_eq!(bench.handler.runs(), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_full_is_not_away() {
    let bench = Bench::with(IdempotencyLayer::fail_open);
    bench.faults.on(StoreVerb::Claim).once().fail(StoreErrorKind::Full);
    assert_eq!(bench.line(ask("k")).await, "503 store-full, retry after 5");
    assert_eq!(bench.handler.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_scope_with_too_many_keys_is_refused_however_open_the_layer_is() {
    for layer in [|layer| layer, IdempotencyLayer::fail_open, IdempotencyLayer::fail_open_when_full] {
        let bench = Bench::with(layer);
        bench.faults.on(StoreVerb::Claim).once().fail(StoreErrorKind::TooManyKeys);
        assert_eq!(bench.line(ask("k")).await, "429 too-many-keys, retry after 5");
        assert_eq!(bench.faults.calls(StoreVerb::Release), 0, "nobody looks for a ghost");
        assert_eq!(bench.line(ask("k")).await, "201 run 1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_late_but_in_time_runs() {
    for after_effect in [false, true] {
        let bench = Bench::new();
        Way::Late(secs(4)).befall(when(bench.faults.on(StoreVerb::Claim).once(), after_effect));
        let told = bench.told(ask("k")).await;
        assert_eq!((&*told.line, told.at), ("201 run 1", secs(4)));
        assert_eq!(bench.line(ask("k")).await, "201 run 1, replayed");
        assert_eq!(bench.faults.calls(StoreVerb::Release), 0, "nobody looks for a ghost");
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_without_room_says_so_and_holds_no_ghost() {
    let bench = Bench::new();
    bench.faults.on(StoreVerb::Claim).once().fail(StoreErrorKind::Full);
    assert_eq!(bench.line(ask("k")).await, "503 store-full, retry after 5");
    sleep(LEASE).await;
    assert_eq!(bench.faults.calls(StoreVerb::Release), 0);
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_takes_effect_after_its_caller_gave_up_holds_nothing() {
    for arrives in [STORE_TIMEOUT + millis(1), STORE_TIMEOUT + secs(1), LEASE] {
        let bench = Bench::behind(|store| Wire::new(store, arrives), |layer| layer);
        let told = bench.told(ask("k")).await;
        assert_eq!((&*told.line, told.at), ("503 store-unavailable, retry after 5", STORE_TIMEOUT));
        bench.until(arrives + millis(1)).await;
        assert_eq!(bench.state("k").await, Some(State::Running), "it has arrived after {arrives:?}");
        bench.until(arrives + secs(6)).await;
        assert_eq!(bench.state("k").await, Some(State::Released), "after {arrives:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_during_its_claim_leaves_no_ghost() {
    for after_effect in [false, true] {
        let background_tasks = BackgroundTasks::new();
        let bench = Bench::with(|layer| layer.background_tasks(background_tasks.clone()));
        let gate = when(bench.faults.on(StoreVerb::Claim).once(), after_effect).hold();
        let client = bench.send(ask("k"));
        gate.reached(1).await;
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
        sleep(millis(200)).await;
        assert!(bench.is_free("k").await, "after its effect: {after_effect}");
        background_tasks.wait().await;
        assert!(bench.elapsed() < LEASE * 2, "nobody looks for ever");
        assert_eq!(bench.handler.runs(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_ghost_is_released_once_the_store_is_back() {
    for (way, after_effect) in ways().filter(|(way, _)| !way.is_permanent()) {
        let bench = Bench::with(|layer| layer.lease(LEASE * 20));
        bench.faults.on(StoreVerb::Claim).once().after_effect().hang();
        way.befall(when(bench.faults.on(StoreVerb::Release), after_effect));
        assert_eq!(bench.line(ask("k")).await, "503 store-unavailable, retry after 5");
        bench.until(LEASE * 4).await;
        assert_eq!(bench.is_free("k").await, after_effect, "{way:?}");
        bench.faults.heal();
        sleep(secs(10)).await;
        assert_eq!(bench.state("k").await, Some(State::Released), "{way:?}");
        assert_eq!(bench.line(ask("k")).await, "201 run 1");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_needs_no_write() {
    let bench = Bench::new();
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
    for verb in [StoreVerb::Renew, StoreVerb::Settle, StoreVerb::Release, StoreVerb::Changed] {
        bench.faults.on(verb).hang();
    }
    let told = bench.told(ask("k")).await;
    assert_eq!((&*told.line, told.at), ("201 run 1, replayed", secs(0)));
    assert_eq!(bench.line(ask("k").body("other")).await, "422 key-reused");
}

#[tokio::test(start_paused = true)]
async fn renewals_that_fail_do_not_disturb_a_handler_that_nobody_overtakes() {
    for (way, after_effect) in ways() {
        let bench = Bench::new();
        way.befall(when(bench.faults.on(StoreVerb::Renew), after_effect));
        let told = bench.told(ask("k").takes(LEASE * 3)).await;
        assert_eq!((&*told.line, told.at), ("201 run 1", LEASE * 3), "{way:?}");
        assert_eq!(bench.line(ask("k")).await, "201 run 1, replayed", "{way:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_ghosts_of_an_outage_do_not_take_the_place_of_work() {
    let background_tasks = BackgroundTasks::new().limit(10);
    let bench = Bench::with(|layer| layer.background_tasks(background_tasks.clone()));
    bench.faults.on(StoreVerb::Claim).hang();
    let refused: Vec<_> = (0..20).map(|number| bench.send(ask(&format!("ghost-{number}")))).collect();
    for client in refused {
        assert_eq!(client.await.unwrap().line, "503 store-unavailable, retry after 5");
    }
    bench.faults.heal();
    bench.log.take();
    let client = bench.send(ask("k").takes(secs(2)));
    sleep(secs(1)).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    background_tasks.wait().await;
    let expected = ["claimed: 1", "detached", "settled", "ended in the background after 1s"];
    assert_eq!(bench.log.take(), expected);
}

#[tokio::test(start_paused = true)]
async fn times_without_end_are_times() {
    let ever = Duration::MAX;
    let bench = Bench::with(|layer| {
        let policy = Policy::replay().lease(ever).retention(ever).while_running(WhileRunning::Wait(ever));
        layer.policy(policy).store_timeout(ever)
    });
    bench.faults.on(StoreVerb::Claim).once().after_effect().fail(StoreErrorKind::Unavailable);
    assert_eq!(bench.line(ask("k")).await, "503 store-unavailable, retry after 5");
    bench.faults.on(StoreVerb::Settle).times(20).fail(StoreErrorKind::Unavailable);
    bench.faults.on(StoreVerb::Changed).once().fail(StoreErrorKind::Unavailable);
    let clients = [bench.send(ask("k").takes(LEASE)), bench.send(ask("k").takes(LEASE))];
    let mut lines = Vec::new();
    for client in clients {
        lines.push(client.await.unwrap().line);
    }
    assert_eq!(lines, ["201 run 1", "201 run 1, replayed"]);
}
