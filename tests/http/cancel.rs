//! A client may leave at any time: at each of them its operation is either not begun, or finished and recorded.

use std::time::Duration;

use tokio::{task::yield_now, time::sleep};
use tower_idempotency::{
    IdempotencyLayer, Policy,
    store::{State, StoreErrorKind, StoreVerb},
    testing::Faults,
};

use crate::common::{
    Seen,
    shop::{LATER, LEASE, Order, STORE_TIMEOUT, Shop},
    steps::{Leaving, Step, polls},
};

/// What a retry sees of an operation whose client left after it had begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Retry {
    Replayed,
    /// It is refused, with this problem.
    Told(&'static str),
    /// It runs, as the second attempt.
    Runs,
    /// It runs once the lease has lapsed, unless the operation had come to its end.
    TakesOver,
}

#[derive(Clone, Copy)]
struct Trial {
    layer: fn(IdempotencyLayer) -> IdempotencyLayer,
    order: Order,
    faults: fn(&Faults),
    over_a_wire: bool,
    /// Whether the first try gets as far as to the handler.
    begins: bool,
    retry: Retry,
    /// How long a retry may be put off if nothing had begun.
    put_off: Duration,
}

const MOMENT: Duration = Duration::from_millis(10);
const VERBS: [StoreVerb; 4] = [StoreVerb::Claim, StoreVerb::Renew, StoreVerb::Settle, StoreVerb::Release];

/// Every step has to be waited for.
const PLAIN: Trial = Trial {
    layer: |layer| layer,
    order: Order::DONE,
    faults: slow,
    over_a_wire: false,
    begins: true,
    retry: Retry::Replayed,
    put_off: STORE_TIMEOUT,
};

const FAILS: Order = Order { status: 500, ..Order::DONE };

fn slow(faults: &Faults) {
    for verb in VERBS {
        faults.on(verb).delay(MOMENT);
    }
}

/// The store does what it is asked to, and says so later.
fn late_answers(faults: &Faults) {
    for verb in VERBS {
        faults.on(verb).after_effect().delay(MOMENT);
    }
}

impl Trial {
    /// A client that leaves after each number of polls, until the answer is there first.
    async fn run(self) {
        for leaving in [Leaving::Waiting, Leaving::Woken] {
            for retried_at_once in [true, false] {
                let mut begun = [0, 0];
                for times in 0.. {
                    let case = format!("{times} polls, {leaving:?}, retried at once: {retried_at_once}");
                    match self.leave(&case, times, leaving, retried_at_once).await {
                        Some(started) => begun[started] += 1,
                        None => break,
                    }
                }
                let enough = begun[0] >= 5 && (begun[1] >= 5) == self.begins;
                assert!(enough, "too few points to leave at: {begun:?}");
            }
        }
    }

    /// Says how often the handler had been started when the client left; `None` where its answer came first.
    async fn leave(self, case: &str, times: usize, leaving: Leaving, retried_at_once: bool) -> Option<usize> {
        let shop = Shop::new(self.order, self.over_a_wire, self.layer);
        (self.faults)(&shop.faults);
        let mut call = shop.call();
        let answer = polls(&mut call, times, leaving).await;
        let started = shop.runs.started();
        drop(call);
        // Let what was sent be counted.
        yield_now().await;
        let ending = shop.faults.calls(StoreVerb::Settle) > 0;

        if !retried_at_once {
            sleep(LATER).await;
            assert_eq!(shop.background_tasks.count(), 0, "{case}");
            let running = shop.record().await.is_some_and(|record| record.state == State::Running);
            let lapses = self.retry == Retry::TakesOver && started == 1 && !ending;
            assert_eq!(running, lapses, "{case}");
            shop.faults.heal();
        }
        let (seen, after) = shop.retry().await;
        let runs = self.order.takes + STORE_TIMEOUT;
        match (started, self.retry) {
            (0, _) => {
                assert!(!seen.replayed && seen.status == self.order.status, "{case}: {seen:?}");
                let put_off = if retried_at_once { self.put_off } else { Duration::ZERO };
                assert!(after < put_off + runs, "{case}: put off for {after:?}");
            }
            (1, Retry::Replayed) => assert_eq!(seen, Seen::replay(self.order.status, "done"), "{case}"),
            (1, Retry::Told(problem)) => assert_eq!(seen.problem(), problem, "{case}"),
            (1, Retry::Runs) => assert!(!seen.replayed && seen.status == self.order.status, "{case}: {seen:?}"),
            (1, Retry::TakesOver) if ending || answer.is_some() => assert!(seen.replayed, "{case}: {seen:?}"),
            (1, Retry::TakesOver) => {
                assert_eq!(shop.runs.attempts(), [1, 2], "{case}");
                assert!(after < LEASE + runs, "{case}: put off for {after:?}");
            }
            _ => panic!("{case}: started {started} times"),
        }

        let runs = match (started, self.retry) {
            (1, Retry::Runs) => 2,
            (1, Retry::TakesOver) => shop.runs.started(),
            _ => 1,
        };
        assert_eq!(shop.runs.started(), runs, "{case}");
        let broken_off = usize::from(self.retry == Retry::TakesOver && runs == 2 && shop.runs.ended.get() == 1);
        assert_eq!(shop.runs.ended.get() + broken_off, runs, "{case}");
        tokio::time::timeout(2 * LATER, shop.background_tasks.wait()).await.expect(case);
        assert_eq!(shop.background_tasks.count(), 0, "{case}");
        let state =
            if self.order.status == 500 && self.retry == Retry::Runs { State::Released } else { State::Settled };
        assert_eq!(shop.record().await.map(|record| record.state), Some(state), "{case}");
        answer.is_none().then_some(started)
    }
}

macro_rules! trials {
    ($($name:ident: $trial:expr;)*) => {
        $(#[tokio::test(start_paused = true)]
        async fn $name() {
            $trial.run().await;
        })*
    };
}

trials! {
    by_default: PLAIN;
    late_answers_of_the_store: Trial { faults: late_answers, ..PLAIN };
    over_a_wire: Trial { over_a_wire: true, ..PLAIN };
    late_answers_over_a_wire: Trial { over_a_wire: true, faults: late_answers, ..PLAIN };
    a_claim_that_takes_effect_after_the_store_timeout: Trial {
        over_a_wire: true,
        faults: |faults| {
            faults.on(StoreVerb::Claim).once().delay(STORE_TIMEOUT + Duration::from_secs(2));
            faults.on(StoreVerb::Claim).delay(MOMENT);
        },
        begins: false,
        put_off: 3 * STORE_TIMEOUT,
        ..PLAIN
    };
    a_store_that_fails_to_settle_for_a_while: Trial {
        faults: |faults| {
            slow(faults);
            faults.on(StoreVerb::Settle).times(3).fail(StoreErrorKind::Unavailable);
            faults.on(StoreVerb::Settle).delay(MOMENT);
        },
        ..PLAIN
    };
    a_settlement_that_is_never_answered: Trial {
        faults: |faults| {
            slow(faults);
            faults.on(StoreVerb::Settle).times(2).after_effect().hang();
            faults.on(StoreVerb::Settle).delay(MOMENT);
        },
        put_off: 3 * STORE_TIMEOUT,
        ..PLAIN
    };
    a_store_that_is_away_for_longer_than_its_timeout: Trial {
        faults: |faults| {
            slow(faults);
            faults.on(StoreVerb::Settle).times(2).hang();
            faults.on(StoreVerb::Settle).delay(MOMENT);
        },
        put_off: 3 * STORE_TIMEOUT,
        ..PLAIN
    };
    attached: Trial { layer: |layer| layer.cancel_on_disconnect(), retry: Retry::TakesOver, ..PLAIN };
    attached_over_a_wire: Trial {
        layer: |layer| layer.cancel_on_disconnect(),
        retry: Retry::TakesOver,
        over_a_wire: true,
        faults: late_answers,
        ..PLAIN
    };
    at_most_once: Trial { layer: |layer| layer.policy(Policy::at_most_once()), ..PLAIN };
    at_most_once_over_a_wire: Trial {
        layer: |layer| layer.policy(Policy::at_most_once()),
        over_a_wire: true,
        faults: late_answers,
        ..PLAIN
    };
    a_failure_at_most_once: Trial { layer: |layer| layer.policy(Policy::at_most_once()), order: FAILS, ..PLAIN };
    a_failure: Trial { order: FAILS, retry: Retry::Runs, ..PLAIN };
    a_failure_over_a_wire: Trial {
        order: FAILS,
        retry: Retry::Runs,
        over_a_wire: true,
        faults: late_answers,
        ..PLAIN
    };
    no_resubmission: Trial {
        layer: |layer| layer.policy(Policy::reject()),
        retry: Retry::Told("duplicate-request"),
        ..PLAIN
    };
    a_stream: Trial {
        order: Order { content_type: "text/event-stream", ..Order::DONE },
        retry: Retry::Told("response-not-retained"),
        ..PLAIN
    };
    an_answer_over_the_limit: Trial {
        layer: |layer| layer.response_limit(3),
        retry: Retry::Told("response-not-retained"),
        ..PLAIN
    };
    a_broken_answer: Trial {
        order: Order { body: &[Step::Pend, Step::Data("do"), Step::Pend, Step::Break], ..Order::DONE },
        retry: Retry::Told("response-not-retained"),
        ..PLAIN
    };
}
