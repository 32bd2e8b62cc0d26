//! A store that is away when a handler ends: its client gets the answer, and the record comes later.

use crate::faulty_bench::{Bench, End, LEASE, STORE_TIMEOUT, Way, ask, secs, ways, when};
use tokio::time::sleep;
use tower_idempotency::{
    BackgroundTasks, IdempotencyLayer,
    store::{State, StoreErrorKind, StoreVerb},
};

const UNAVAILABLE: Way = Way::Fails(StoreErrorKind::Unavailable);

/// How a handler ends, the verb for that, and what its client and the next one receive.
const ENDINGS: [(u16, StoreVerb, State, &str, &str); 2] = [
    (201, StoreVerb::Settle, State::Settled, "201 run 1", "201 run 1, replayed"),
    (500, StoreVerb::Release, State::Released, "500 run 1", "201 run 2"),
];

#[tokio::test(start_paused = true)]
async fn an_ending_that_fails_once_is_tried_again() {
    for (status, verb, state, first, next) in ENDINGS {
        for (way, after_effect) in ways().filter(|(way, _)| !way.is_permanent()) {
            let bench = Bench::new();
            way.befall(when(bench.faults.on(verb).once(), after_effect));
            let told = bench.told(ask("k").takes(secs(2)).ends(End::Answers(status))).await;
            assert_eq!(told.line, first, "{verb} {way:?}");
            assert!(told.at <= secs(2) + STORE_TIMEOUT, "{verb} {way:?}: {:?}", told.at);
            sleep(secs(1)).await;
            assert_eq!(bench.state("k").await, Some(state), "{verb} {way:?}");
            assert_eq!(bench.line(ask("k")).await, next, "{verb} {way:?}");
            assert_eq!(bench.log.count("lost: 1"), 0, "{verb} {way:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_ending_is_recorded_once_the_store_is_back() {
    for (status, verb, state, first, next) in ENDINGS {
        for (way, after_effect) in ways().filter(|(way, _)| !way.is_permanent()) {
            for away in [secs(20), LEASE * 20] {
                let bench = Bench::new();
                way.befall(when(bench.faults.on(verb), after_effect));
                let told = bench.told(ask("k").takes(secs(2)).ends(End::Answers(status))).await;
                assert_eq!(told.line, first, "{verb} {way:?}");
                assert!(told.at <= secs(2) + STORE_TIMEOUT, "{verb} {way:?}: held for {:?}", told.at);
                assert!(told.at > secs(1) + STORE_TIMEOUT || after_effect, "{verb} {way:?}: given up at {:?}", told.at);
                bench.until(away).await;
                if !after_effect {
                    assert_eq!(bench.line(ask("k")).await, "409 request-in-progress, retry after 5", "{verb} {way:?}");
                }
                bench.faults.heal();
                sleep(STORE_TIMEOUT + secs(2)).await;
                assert_eq!(bench.state("k").await, Some(state), "{verb} {way:?}");
                assert_eq!(bench.line(ask("k")).await, next, "{verb} {way:?}");
                assert_eq!((bench.log.count("lost: 1"), bench.log.count("not recorded: settle")), (0, 0), "{way:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_ending_that_fails_for_good_is_not_tried_again() {
    for (status, verb, _, first, _) in ENDINGS {
        for (way, _) in ways().filter(|(way, after_effect)| way.is_permanent() && !after_effect) {
            let bench = Bench::new();
            way.befall(bench.faults.on(verb));
            let told = bench.told(ask("k").takes(secs(2)).ends(End::Answers(status))).await;
            assert_eq!((&*told.line, told.at), (first, secs(2)), "{verb} {way:?}");
            sleep(LEASE).await;
            assert_eq!(bench.faults.calls(verb), 1, "{verb} {way:?}");
            assert_eq!(bench.log.count(&format!("not recorded: {verb}")), 1, "{verb} {way:?}");
            bench.faults.heal();
            assert_eq!(bench.line(ask("k")).await, "201 run 2", "its claim has lapsed: {verb} {way:?}");
            assert_eq!(bench.handler.attempts(), "1 2t");
        }
    }
}

/// Tried again, it would be as large; not kept at all, the operation would run again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_large_for_the_store_leaves_a_tombstone_at_once() {
    let bench = Bench::new();
    bench.faults.on(StoreVerb::Settle).once().fail(StoreErrorKind::TooLarge);
    let told = bench.told(ask("k").takes(secs(2))).await;
    assert_eq!((&*told.line, told.at), ("201 run 1", secs(2)));
    assert_eq!((bench.log.count("settle failed: TooLarge, again"), bench.log.count("not recorded: settle")), (1, 0));
    assert_eq!(bench.state("k").await, Some(State::Settled));
    sleep(LEASE * 2).await;
    assert_eq!(bench.line(ask("k")).await, "409 response-not-retained");
    assert_eq!(bench.handler.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tombstone_that_is_too_large_is_given_up() {
    let bench = Bench::new();
    bench.faults.on(StoreVerb::Settle).fail(StoreErrorKind::TooLarge);
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
    assert_eq!((bench.faults.calls(StoreVerb::Settle), bench.log.count("not recorded: settle")), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_wholly_away_while_the_handler_runs_harms_nothing() {
    // Longer than the lease, so that it lapses; nobody takes it over, as nobody can.
    for (status, _, state, first, next) in ENDINGS {
        for (way, _) in ways().filter(|(way, after_effect)| !way.is_permanent() && !after_effect) {
            let bench = Bench::new();
            let client = bench.send(ask("k").takes(secs(2)).ends(End::Answers(status)));
            bench.until(secs(1)).await;
            way.befall(bench.faults.on_all());
            let told = client.await.unwrap();
            assert_eq!(told.line, first, "{way:?}");
            assert!(told.at <= secs(2) + STORE_TIMEOUT, "{way:?}: {:?}", told.at);
            assert_eq!(bench.line(ask("k")).await, "503 store-unavailable, retry after 5", "{way:?}");
            bench.until(LEASE * 3).await;
            assert!(bench.record("k").await.unwrap().is_abandoned(), "{way:?}");
            bench.faults.heal();
            sleep(STORE_TIMEOUT * 2 + secs(2)).await;
            assert_eq!(bench.state("k").await, Some(state), "{way:?}");
            assert_eq!(bench.line(ask("k")).await, next, "{way:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_ending_that_comes_back_too_late_leaves_the_winners_record_alone() {
    let background_tasks = BackgroundTasks::new();
    let bench = Bench::with(|layer| layer.background_tasks(background_tasks.clone()));
    for verb in [StoreVerb::Renew, StoreVerb::Settle] {
        UNAVAILABLE.befall(bench.faults.on(verb));
    }
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
    bench.until(LEASE + secs(1)).await;
    let second = bench.send(ask("k").takes(secs(3)));
    bench.until(LEASE + secs(2)).await;
    bench.faults.heal();
    assert_eq!(second.await.unwrap().line, "201 run 2");
    background_tasks.wait().await;
    assert_eq!(bench.line(ask("k")).await, "201 run 2, replayed");
    assert_eq!((bench.log.count("lost: 1"), bench.handler.attempts()), (1, "1 2t".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_outlasts_the_leftovers_is_told() {
    let background_tasks = BackgroundTasks::new().max_duration(LEASE * 10);
    let bench = Bench::with(|layer| layer.background_tasks(background_tasks.clone()));
    for verb in [StoreVerb::Renew, StoreVerb::Settle] {
        UNAVAILABLE.befall(bench.faults.on(verb));
    }
    assert_eq!(bench.line(ask("k")).await, "201 run 1");
    assert_eq!(background_tasks.count(), 1);
    background_tasks.wait().await;
    assert_eq!(bench.log.count("not recorded: settle"), 1);
    bench.faults.heal();
    sleep(LEASE).await;
    assert_eq!(bench.line(ask("k")).await, "201 run 2", "it has lapsed");
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_during_an_outage_frees_its_key_afterwards() {
    let bench = Bench::new();
    UNAVAILABLE.befall(bench.faults.on(StoreVerb::Release));
    assert!(bench.send(ask("k").ends(End::Panics)).await.unwrap_err().is_panic());
    assert!(bench.elapsed() <= STORE_TIMEOUT);
    bench.until(secs(20)).await;
    bench.faults.heal();
    sleep(secs(2)).await;
    assert_eq!(bench.state("k").await, Some(State::Released));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_its_answer_is_recorded_leaves_a_record() {
    for (status, verb, state, _, _) in ENDINGS {
        let bench = Bench::with(IdempotencyLayer::cancel_on_disconnect);
        bench.faults.on(verb).times(3).fail(StoreErrorKind::Unavailable);
        let client = bench.send(ask("k").ends(End::Answers(status)));
        bench.faults.called(verb, 2).await;
        client.abort();
        assert!(client.await.unwrap_err().is_cancelled());
        sleep(secs(1)).await;
        assert_eq!(bench.state("k").await, Some(state), "once the handler has ended, attached or not");
    }
}
