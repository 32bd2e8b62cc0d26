//! Clients and faults by chance: whatever their order, an operation succeeds once, and nothing is left behind.

use std::{collections::BTreeSet, time::Duration};

use crate::faulty_bench::{Ask, Bench, End, LEASE, STORE_TIMEOUT, Way, ask, millis, secs, when};
use tokio::{task::JoinHandle, time::sleep};
use tower_idempotency::{
    BackgroundTasks, IdempotencyLayer, WhileRunning,
    store::{State, StoreErrorKind, StoreVerb},
};

const SEEDS: u64 = 60;
const PATIENCE: Duration = secs(20);

/// Numbers that look like chance and are the same for the same seed (xorshift).
struct Chance(u64);

impl Chance {
    fn new(seed: u64) -> Self {
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_in(&mut self, number: u64) -> bool {
        self.below(number) == 0
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
    }

    /// A panic without its client keeps the claim until it lapses, so who leaves does not panic.
    fn ask(&mut self, leaves: bool) -> Ask {
        let last = if leaves { End::Fails } else { End::Panics };
        let end = self.of(&[End::Answers(201), End::Answers(201), End::Answers(500), End::Fails, last]);
        let takes = self.of(&[millis(0), millis(300), secs(2), secs(12), LEASE * 2]);
        ask("k").takes(takes).ends(end)
    }

    /// Scripts a fault; renewals are struck so seldom that no lease lapses.
    fn strike(&mut self, bench: &Bench) {
        use StoreErrorKind::{Timeout, Unavailable};
        use StoreVerb::{Changed, Claim, Release, Renew, Settle};
        let verb = self.of(&[Claim, Claim, Settle, Settle, Release, Release, Changed, Renew]);
        let way = self.of(&[
            Way::Fails(Unavailable),
            Way::Fails(Timeout),
            Way::Hangs,
            Way::Late(secs(1)),
            Way::Late(secs(9)),
        ]);
        let times = if verb == Renew { 1 } else { usize::try_from(self.below(4)).unwrap() };
        way.befall(when(bench.faults.on(verb).times(times), self.one_in(2)));
    }
}

/// Returns what the clients that stayed received. No client may be held for longer than its bounds.
async fn lines(clients: Vec<JoinHandle<crate::faulty_bench::Told>>) -> Vec<String> {
    let mut lines = Vec::new();
    for client in clients {
        // A panic is passed on, and a client that has left receives nothing.
        if let Ok(told) = client.await {
            lines.push(told.line);
        }
    }
    lines
}

/// Returns the runs whose success a client received.
fn successes(lines: &[String]) -> BTreeSet<&str> {
    lines.iter().filter_map(|line| line.strip_prefix("201 ")?.split(',').next()).collect()
}

async fn play(seed: u64, adjust: impl FnOnce(IdempotencyLayer) -> IdempotencyLayer) {
    let mut chance = Chance::new(seed);
    let background_tasks = BackgroundTasks::new();
    let bench = Bench::with(|layer| adjust(layer.background_tasks(background_tasks.clone())));
    let mut clients = Vec::new();
    for _ in 0..30 {
        if chance.one_in(3) {
            chance.strike(&bench);
        }
        let leaves = chance.one_in(5);
        let client = bench.send(chance.ask(leaves));
        sleep(millis(chance.below(4_000))).await;
        if leaves {
            client.abort();
        }
        clients.push(client);
    }
    bench.faults.heal();
    let lines = lines(clients).await;
    background_tasks.wait().await;

    assert_eq!(bench.handler.at_once(), 1, "seed {seed}");
    let succeeded = successes(&lines);
    assert!(succeeded.len() <= 1, "seed {seed}: {lines:#?}");
    let firsts = lines.iter().filter(|line| line.starts_with("201") && !line.ends_with("replayed")).count();
    assert!(firsts <= 1, "seed {seed}: {lines:#?}");
    let settled = bench.state("k").await == Some(State::Settled);
    assert!(settled || bench.is_free("k").await, "seed {seed}: {lines:#?}");
    if let Some(run) = succeeded.first() {
        assert_eq!(bench.line(ask("k")).await, format!("201 {run}, replayed"), "seed {seed}: {lines:#?}");
    }
    let heard = bench.log.take();
    // "lost" may be reported: a release whose answer was lost may find the next claim when it is tried again.
    for never in ["taken over", "not recorded"] {
        assert!(!heard.iter().any(|line| line.starts_with(never)), "seed {seed}: {heard:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_second_is_refused() {
    for seed in 0..SEEDS {
        play(seed, |layer| layer).await;
    }
}

#[tokio::test(start_paused = true)]
async fn who_comes_second_waits() {
    for seed in 0..SEEDS {
        play(seed, |layer| layer.while_running(WhileRunning::Wait(PATIENCE))).await;
    }
}

/// Runs overlap here, since leases lapse; what clients receive does not.
#[tokio::test(start_paused = true)]
async fn whoever_is_overtaken_tells_no_other_story() {
    let mut overtaken = 0;
    for seed in 0..SEEDS {
        let mut chance = Chance::new(seed);
        let bench = Bench::with(IdempotencyLayer::cancel_on_disconnect);
        let mut clients = Vec::new();
        for _ in 0..20 {
            let fault = bench.faults.on(StoreVerb::Renew);
            match chance.below(3) {
                0 => fault.hang(),
                1 => fault.fail(StoreErrorKind::Unavailable),
                _ => bench.faults.heal(),
            }
            let leaves = chance.one_in(4);
            let takes = chance.of(&[secs(1), LEASE, LEASE * 2, LEASE * 4]);
            let end = chance.of(&[End::Answers(201), End::Answers(201), End::Answers(500), End::Fails]);
            let client = bench.send(ask("k").takes(takes).ends(end));
            sleep(secs(chance.below(40))).await;
            if leaves {
                client.abort();
            }
            clients.push(client);
        }
        let lines = lines(clients).await;
        assert!(successes(&lines).len() <= 1, "seed {seed}: {lines:#?}");
        overtaken += usize::from(bench.handler.at_once() > 1);
    }
    assert!(overtaken > 0, "nobody was overtaken");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_held_for_longer_than_the_bounds() {
    for seed in 0..SEEDS {
        let mut chance = Chance::new(seed);
        let bench = Bench::with(|layer| layer.while_running(WhileRunning::Wait(PATIENCE)));
        let mut clients = Vec::new();
        for _ in 0..20 {
            chance.strike(&bench);
            let sent = bench.elapsed();
            clients.push((sent, bench.send(ask("k").takes(secs(1)))));
            sleep(millis(chance.below(2_000))).await;
        }
        for (sent, client) in clients {
            let told = client.await.unwrap();
            // Its claim, its patience, its claim again, its handler, its ending.
            let bound = PATIENCE + STORE_TIMEOUT + secs(1) + STORE_TIMEOUT;
            assert!(told.at <= sent + bound, "seed {seed}: {} at {:?}, sent at {sent:?}", told.line, told.at);
        }
    }
}
