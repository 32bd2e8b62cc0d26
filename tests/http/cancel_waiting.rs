//! A duplicate that waits for the first one may leave at any time, and leaves nothing behind.

use std::time::Duration;

use tokio::{
    task::yield_now,
    time::{Instant, sleep, timeout},
};
use tower_idempotency::{
    WhileRunning, fingerprint,
    store::{Claim, State, Store, StoreVerb},
};

use crate::common::{
    Seen,
    shop::{LATER, LEASE, Order, STORE_TIMEOUT, Shop, look, record_key},
    steps::{Leaving, polls},
};

const MOMENT: Duration = Duration::from_millis(10);
const VERBS: [StoreVerb; 5] =
    [StoreVerb::Claim, StoreVerb::Renew, StoreVerb::Settle, StoreVerb::Release, StoreVerb::Changed];

/// What becomes of the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Succeeds,
    Fails,
    /// Its process is gone.
    Crashed,
}

fn shop(first: First, over_a_wire: bool) -> Shop {
    let order = Order { fails_first: first == First::Fails, ..Order::DONE };
    let shop = Shop::new(order, over_a_wire, |layer| {
        layer.while_running(WhileRunning::Wait(LATER)).unscoped().fingerprint(fingerprint::off())
    });
    for verb in VERBS {
        shop.faults.on(verb).delay(MOMENT);
    }
    shop
}

async fn begin(shop: &Shop, first: First) {
    if first == First::Crashed {
        shop.store.claim(&record_key(), &Claim::new(LEASE, 10 * LEASE)).await.unwrap();
        return;
    }
    tokio::spawn(shop.call());
    while shop.runs.started() == 0 {
        sleep(MOMENT).await;
    }
}

/// `None` where its answer came first; otherwise, whether the duplicate had been started.
async fn leave(first: First, over_a_wire: bool, times: usize, leaving: Leaving) -> Option<bool> {
    let case = format!("{times} polls, {leaving:?}");
    let shop = shop(first, over_a_wire);
    begin(&shop, first).await;
    let begun = Instant::now();
    let before = shop.record().await.expect("a record");
    let own = usize::from(first != First::Crashed);

    let mut duplicate = shop.call();
    let answer = polls(&mut duplicate, times, leaving).await;
    let started = shop.runs.started() > own;
    drop(duplicate);
    assert_eq!(shop.waiting(), 0, "{case}");
    yield_now().await;
    let first_runs = if first == First::Crashed { begun.elapsed() < LEASE } else { shop.runs.ended.get() == 0 };
    if first_runs {
        let after = shop.record().await.expect("a record");
        assert_eq!((after.claimant, after.attempt, after.state), (before.claimant, 1, State::Running), "{case}");
    }

    let (seen, after) = shop.retry().await;
    assert!(after < LEASE + 2 * Order::DONE.takes + STORE_TIMEOUT, "{case}: put off for {after:?}");
    let ran_by_retry = first != First::Succeeds && !started;
    assert_eq!(seen, Seen { replayed: !ran_by_retry, ..Seen::first(201, "done") }, "{case}");
    let runs = own + usize::from(first != First::Succeeds);
    assert_eq!((shop.runs.started(), shop.runs.ended.get()), (runs, runs), "{case}");
    timeout(2 * LATER, shop.background_tasks.wait()).await.expect(&case);
    assert_eq!(shop.waiting(), 0, "{case}");
    let record = shop.record().await.expect("a record");
    assert_eq!((record.state, record.payload.is_some()), (State::Settled, true), "{case}");
    answer.is_none().then_some(started)
}

#[tokio::test(start_paused = true)]
async fn a_waiting_client_may_leave_at_every_point() {
    for first in [First::Succeeds, First::Fails, First::Crashed] {
        for over_a_wire in [false, true] {
            for leaving in [Leaving::Waiting, Leaving::Woken] {
                let mut begun = [0, 0];
                for times in 0.. {
                    match leave(first, over_a_wire, times, leaving).await {
                        Some(started) => begun[usize::from(started)] += 1,
                        None => break,
                    }
                }
                let enough = begun[0] >= 8 && (begun[1] >= 5) == (first != First::Succeeds);
                assert!(enough, "{first:?}: too few points to leave at: {begun:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn of_those_who_stay_exactly_one_runs_next() {
    for first in [First::Fails, First::Crashed] {
        let shop = shop(first, true);
        begin(&shop, first).await;
        let all: Vec<_> = (0..9).map(|_| tokio::spawn(shop.call())).collect();
        sleep(Duration::from_secs(1)).await;
        assert_eq!(shop.waiting(), all.len());
        let (leave, stay): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(at, _)| at % 3 == 0);
        for (_, duplicate) in leave {
            duplicate.abort();
        }
        let mut seen = Vec::new();
        for (_, duplicate) in stay {
            seen.push(look(duplicate.await.unwrap()).await);
        }
        seen.sort_by_key(|seen| seen.replayed);
        assert_eq!(seen.remove(0), Seen::first(201, "done"));
        assert!(seen.into_iter().all(|seen| seen == Seen::replay(201, "done")));
        assert_eq!(shop.runs.ended.get(), 1 + usize::from(first == First::Fails));
        assert_eq!(shop.waiting(), 0);
    }
}
