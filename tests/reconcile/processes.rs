//! Processes that are killed, on stores that they share with others.
#![allow(dead_code)] // if no feature brings such a store

use std::{
    collections::HashMap,
    env,
    future::pending,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tokio::time::sleep;
use tower_idempotency::{
    MemoryStore, Once, Operation, Reconciler, RunPolicy,
    reconcile::{Payload, Resolution, SweepReport},
    run::RunError,
    store::{Claim, Filter, RecordKey, State, StoreAdmin},
};

use crate::stores::{Shared, connect};

const LEASE: Duration = Duration::from_millis(600);
const PATIENCE: Duration = Duration::from_secs(60);
const PAYMENTS: usize = 9;

on_every_store! { each_is_asked_about_once a_reconciler_that_is_killed a_record_is_left_alone_for_a_while }

/// A process of its own, which ends when this is dropped, as by `kill -9`.
struct Process(Child);

impl Process {
    /// Waits until it has said so.
    fn start(role: &str, shared: &Shared, until: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "processes::in_a_process_of_its_own", "--nocapture"])
            .env("TEST_ROLE", role)
            .env("TEST_STORE", &shared.url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let process = Self(child);
        assert!(lines.any(|line| line.unwrap().ends_with(until)), "the process has not said `{until}`");
        process
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the other processes do. Without a role, nothing.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_process_of_its_own() {
    let Ok(role) = env::var("TEST_ROLE") else { return };
    let store = connect(&env::var("TEST_STORE").unwrap()).await;
    match &*role {
        "pay" => {
            let payments = payments(store);
            let begun = Arc::new(tokio::sync::Semaphore::new(0));
            for number in 0..PAYMENTS {
                let begun = begun.clone();
                let pay = move |_| async move {
                    begun.add_permits(1);
                    pending::<Result<usize, String>>().await
                };
                tokio::spawn(payments.run(&number.to_string(), pay));
            }
            begun.acquire_many(u32::try_from(PAYMENTS).unwrap()).await.unwrap().forget();
            println!("begun");
        }
        "reconcile" => {
            let asks = |_| async {
                println!("asked");
                pending().await
            };
            Reconciler::new(store, asks).grace(Duration::ZERO).lease(LEASE).run_once().await.unwrap();
        }
        _ => panic!("{role}?"),
    }
    pending::<()>().await;
}

fn payments(store: Arc<dyn StoreAdmin>) -> Once {
    Once::new(store, "payments").policy(RunPolicy::at_most_once().lease(LEASE))
}

async fn abandoned(store: &dyn StoreAdmin) -> usize {
    let mut count = 0;
    let mut after = None;
    loop {
        let page = store.list(Filter::Abandoned, after, 100).await.unwrap();
        count += page.entries.iter().filter(|entry| entry.key.route() == "payments").count();
        after = page.next;
        if after.is_none() {
            return count;
        }
    }
}

/// Payments that were begun by a process that is no more.
async fn begun_by_the_dead(shared: &Shared) {
    drop(Process::start("pay", shared, "begun"));
    let store = connect(&shared.url).await;
    let began = Instant::now();
    while abandoned(&*store).await < PAYMENTS {
        assert!(began.elapsed() < PATIENCE, "they are not abandoned");
        sleep(LEASE / 10).await;
    }
}

/// Every third was paid, every third was not, and of the rest nobody knows.
fn found_out(key: &str) -> Resolution {
    let number: usize = key.parse().unwrap();
    match number % 3 {
        0 => Resolution::Settle(Payload::value(&number).unwrap()),
        1 => Resolution::Release,
        _ => Resolution::Leave,
    }
}

async fn each_is_asked_about_once(shared: &Shared) {
    begun_by_the_dead(shared).await;
    let asked = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
    let child_keys = Arc::new(Mutex::new(HashMap::<String, Option<String>>::new()));
    let mut reconcilers = Vec::new();
    for _ in 0..3 {
        let (asked, child_keys) = (asked.clone(), child_keys.clone());
        let ask = move |abandoned: tower_idempotency::reconcile::Abandoned| {
            let key = abandoned.key().key().to_owned();
            child_keys.lock().unwrap().insert(key.clone(), abandoned.child_key("bank"));
            *asked.lock().unwrap().entry(key.clone()).or_default() += 1;
            async move {
                sleep(LEASE * 2).await;
                found_out(&key)
            }
        };
        reconcilers.push(Reconciler::new(connect(&shared.url).await, ask).grace(Duration::ZERO).lease(LEASE));
    }
    let [one, two, three] = &reconcilers[..] else { unreachable!() };
    let mut total = SweepReport::default();
    for _ in 0..2 {
        let (one, two, three) = tokio::join!(one.run_once(), two.run_once(), three.run_once());
        for sweep in [one.unwrap(), two.unwrap(), three.unwrap()] {
            assert_eq!(sweep.failed, 0);
            total.settled += sweep.settled;
            total.released += sweep.released;
            total.left += sweep.left;
        }
    }
    assert_eq!((total.settled, total.released, total.left), (3, 3, 3));
    let asked = asked.lock().unwrap().clone();
    assert!(asked.len() == PAYMENTS && asked.values().all(|&times| times == 1), "{asked:?}");

    // Those that the dead have shown to the bank.
    let elsewhere = payments(Arc::new(MemoryStore::new()));
    for number in 0..PAYMENTS {
        let number = number.to_string();
        let tell = |operation: Operation| async move { Ok::<_, String>(operation.child_key("bank")) };
        let shown = elsewhere.run(&number, tell).await.unwrap();
        assert_eq!(child_keys.lock().unwrap()[&number], Some(shown));
    }

    let payments = payments(connect(&shared.url).await);
    for number in 0..PAYMENTS {
        let again = payments.run(&number.to_string(), |_| async { Ok::<_, String>(100) }).await;
        match number % 3 {
            0 => assert_eq!(again, Ok(number)),
            1 => assert_eq!(again, Ok(100)),
            _ => assert!(matches!(again, Err(RunError::Refused(it)) if it.name() == "outcome-unknown")),
        }
    }
}

/// For the time that was set, and by default for ten times the lease that the store keeps.
async fn a_record_is_left_alone_for_a_while(shared: &Shared) {
    let store = connect(&shared.url).await;
    let lease = Duration::from_millis(200);
    let key = |key: &str| RecordKey::new("payments", None, key).unwrap();
    for (name, grace) in [("set", Some(LEASE)), ("default", None)] {
        let mut claim = Claim::new(lease, PATIENCE * 2);
        claim.at_most_once = true;
        store.claim(&key(name), &claim).await.unwrap();
        // A renewal begins the lease anew, and the time with it.
        sleep(lease * 2).await;
        let renewed = Instant::now();
        store.renew(&key(name), &claim).await.unwrap();
        let reconciler = Reconciler::new(store.clone(), |_| std::future::ready(Resolution::Release));
        let reconciler = if let Some(grace) = grace { reconciler.grace(grace) } else { reconciler };
        let due = lease + grace.unwrap_or(lease * 10);
        loop {
            let looked = Instant::now();
            if reconciler.run_once().await.unwrap().released == 1 {
                // The times of a server are whole milliseconds.
                let after = renewed.elapsed() + Duration::from_millis(10);
                assert!(after >= due, "{name}: after {after:?}");
                break;
            }
            assert!(looked - renewed < due + PATIENCE, "{name}: it is not asked about");
            sleep(lease / 10).await;
        }
        assert_eq!(store.inspect(&key(name)).await.unwrap().unwrap().state, State::Released);
    }
}

async fn a_reconciler_that_is_killed(shared: &Shared) {
    begun_by_the_dead(shared).await;
    drop(Process::start("reconcile", shared, "asked"));
    let store = connect(&shared.url).await;
    let ask = |abandoned: tower_idempotency::reconcile::Abandoned| async move {
        Resolution::Settle(Payload::value(abandoned.key().key()).unwrap())
    };
    let reconciler = Reconciler::new(store.clone(), ask).grace(Duration::ZERO);
    let began = Instant::now();
    let mut settled = 0;
    while settled < PAYMENTS {
        assert!(began.elapsed() < PATIENCE, "{settled} settled");
        settled += reconciler.run_once().await.unwrap().settled;
        sleep(LEASE / 10).await;
    }
    assert_eq!(abandoned(&*store).await, 0);
}
