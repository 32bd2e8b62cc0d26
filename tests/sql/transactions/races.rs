//! Many at once.

use std::{sync::Arc, time::Duration};

use tower_idempotency::WhileRunning;

use super::process::Process;
use crate::database::TestDatabase;

/// SQLite has one writer, and no two processes write to a file at once.
async fn two<D: TestDatabase>(place: &Arc<D::Place>) -> [Process<D>; 2] {
    let one = Process::<D>::start(place).await;
    if D::NAME == "SQLite" { [one.clone(), one] } else { [one, Process::start(place).await] }
}

pub(crate) async fn many_racers<D: TestDatabase>() {
    let place = D::place().await;
    let processes = two::<D>(&place).await;
    for key in 0..40 {
        let key = key.to_string();
        let racers: Vec<_> = (0..15).map(|n| processes[n % 2].spawn(&key, "insert")).collect();
        let mut first = 0;
        for racer in racers {
            let told = racer.await.unwrap();
            match told.status.as_u16() {
                201 => first += u32::from(!told.replayed),
                409 => told.is_problem(409, "request-in-progress"),
                _ => panic!("{told:?}"),
            }
        }
        assert_eq!((first, processes[0].effects(&key).await), (1, 1), "{key}");
    }
}

/// No duplicate of a settled key learns that it runs, however many duplicates there are.
pub(crate) async fn duplicates_of_settled_keys<D: TestDatabase>() {
    let place = D::place().await;
    let processes = two::<D>(&place).await;
    for key in 0..20 {
        processes[0].post(&key.to_string(), "insert").await.is(201);
    }
    let tasks: Vec<_> = (0..24)
        .map(|n| {
            let process = processes[n % 2].clone();
            tokio::spawn(async move {
                for key in 0..20 {
                    assert!(process.post(&key.to_string(), "insert").await.is(201).replayed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
}

pub(crate) async fn three_of_which_the_first_fails<D: TestDatabase>() {
    let process = Process::<D>::with(&D::place().await, 8, |layer| {
        layer.while_running(WhileRunning::Wait(Duration::from_secs(20)))
    })
    .await;
    let first = process.spawn("a", "insert;gate;status=500");
    process.started().await;
    let others = [process.spawn("a", "insert"), process.spawn("a", "insert")];
    tokio::time::sleep(Duration::from_millis(50)).await;
    process.go_on();
    first.await.unwrap().is(500);
    let mut replays = 0;
    for other in others {
        replays += u32::from(other.await.unwrap().is(201).replayed);
    }
    assert_eq!((replays, process.effects("a").await), (1, 1));
}

pub(crate) async fn who_waits_gets_the_answer<D: TestDatabase>() {
    let place = D::place().await;
    let wait =
        || Process::<D>::with(&place, 8, |layer| layer.while_running(WhileRunning::Wait(Duration::from_secs(20))));
    let one = wait().await;
    let other = if D::NAME == "SQLite" { one.clone() } else { wait().await };
    let first = one.spawn("a", "insert;gate");
    one.started().await;
    let waiting = [one.spawn("a", "insert"), other.spawn("a", "insert")];
    tokio::time::sleep(Duration::from_millis(100)).await;
    one.go_on();
    first.await.unwrap().is(201);
    for waiting in waiting {
        assert!(waiting.await.unwrap().is(201).replayed);
    }
    assert_eq!(one.effects("a").await, 1);
}

/// A duplicate needs no connection to learn that the first one runs.
pub(crate) async fn a_full_pool<D: TestDatabase>() {
    let process = Process::<D>::with(&D::place().await, 1, |layer| layer).await;
    let first = process.spawn("a", "insert;gate");
    process.started().await;
    for _ in 0..20 {
        process.post("a", "insert").await.is_problem(409, "request-in-progress");
    }
    process.go_on();
    first.await.unwrap().is(201);
    assert_eq!(process.effects("a").await, 1);
}

/// One connection stays for handlers that need another one beside their transaction, so that they do not wait for each
/// other for ever.
pub(crate) async fn a_second_connection<D: TestDatabase>() {
    let process = Process::<D>::with(&D::place().await, 2, |layer| layer).await;
    let process = Arc::new(process);
    let runs: Vec<_> = (0..8).map(|key| process.spawn(&key.to_string(), "insert;second")).collect();
    for run in runs {
        run.await.unwrap().is(201);
    }
}

/// However many wait for a transaction of another process, one of them asks the database for all.
pub(crate) async fn a_crowd_that_waits_asks_as_one<D: TestDatabase>() {
    const CROWD: usize = 600;
    const WATCHED: Duration = Duration::from_secs(5);

    let place = D::place().await;
    // The database would end the first one's transaction, which does nothing for longer than a lease.
    let long = Duration::from_secs(120);
    let wait = || Process::<D>::with(&place, 8, |layer| layer.lease(long).while_running(WhileRunning::Wait(long)));
    let one = wait().await;
    let other = if D::NAME == "SQLite" { one.clone() } else { wait().await };
    let first = one.spawn("a", "insert;gate");
    one.started().await;
    let sent = crate::counting::statements_about("idempotency_records");
    let crowd: Vec<_> = (0..CROWD).map(|_| other.spawn("a", "insert")).collect();
    // Each of them asks once when it comes.
    for waited in 0.. {
        let before = sent();
        tokio::time::sleep(Duration::from_millis(500)).await;
        if sent() - before <= 10 {
            break;
        }
        assert!(waited < 30, "they do not come to rest");
    }
    let before = sent();
    tokio::time::sleep(WATCHED).await;
    let asked = sent() - before;
    println!("{asked} statements in {WATCHED:?} for {CROWD} that wait");
    assert!(asked <= 10 * WATCHED.as_secs(), "{asked} statements in {WATCHED:?}");
    one.go_on();
    first.await.unwrap().is(201);
    for waiting in crowd {
        assert!(waiting.await.unwrap().is(201).replayed);
    }
    assert_eq!(one.effects("a").await, 1);
}
