//! On MariaDB.

use std::time::Duration;

use sqlx::MySql;
use tower_idempotency::store::StoreAdmin;

use super::{crashes, process::Process, sessions, what_holds_everywhere};
use crate::database::TestDatabase;

what_holds_everywhere!(MySql);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost() {
    crashes::a_commit_whose_answer_is_lost::<MySql>().await;
}

/// A purge finds what has expired by an index and removes it by its key; one that scanned the table would lock the gaps
/// that fresh keys go to, and they would look as if they ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_does_not_make_fresh_keys_look_running() {
    let place = MySql::place().await;
    let process = Process::<MySql>::with(&place, 8, |layer| layer.retention(Duration::from_millis(1))).await;
    let purging = tokio::spawn({
        let store = process.store.clone();
        async move {
            loop {
                store.purge(1000).await.unwrap();
            }
        }
    });
    let runs: Vec<_> = (0..4)
        .map(|task| {
            let process = process.clone();
            tokio::spawn(async move {
                for n in 0..150 {
                    process.post(&format!("{task}-{n}"), "insert").await.is(201);
                }
            })
        })
        .collect();
    for run in runs {
        run.await.unwrap();
    }
    purging.abort();
}

/// A handler that swallows the error of a deadlock has lost all that it did before, and does not tell it as a success.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadlock_that_is_swallowed() {
    let place = MySql::place().await;
    let process = Process::<MySql>::start(&place).await;
    process.run("CREATE TABLE heavy (n INT PRIMARY KEY) ENGINE = InnoDB").await;
    process.run("INSERT INTO heavy SELECT seq FROM seq_1_to_2000").await;
    let mut other = MySql::pool(&place, 1).await.begin().await.unwrap();
    MySql::say(&mut other, "UPDATE heavy SET n = n + 100000 WHERE n > 1000").await.unwrap();
    let lock = "insert;run=SELECT n FROM heavy WHERE n = 1 FOR UPDATE;gate;swallow=SELECT n FROM heavy WHERE n = 1500 FOR UPDATE";
    let victim = process.spawn("a", lock);
    process.started().await;
    process.go_on();
    tokio::time::sleep(Duration::from_millis(300)).await;
    // Of two, InnoDB sacrifices the one that has written less.
    MySql::say(&mut other, "SELECT n FROM heavy WHERE n = 1 FOR UPDATE").await.unwrap();
    other.rollback().await.unwrap();
    victim.await.unwrap().is_problem(500, "rolled-back");
    assert_eq!((process.effects("a").await, process.records().await), (0, 0));
}

/// A process that stands still keeps its key for as long as the lease says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_handler_is_overtaken_and_undone() {
    let place = MySql::place().await;
    let stalled = Process::<MySql>::with(&place, 4, |layer| layer.lease(Duration::from_secs(1))).await;
    let other = Process::<MySql>::start(&place).await;
    let late = stalled.spawn("a", "insert;gate");
    stalled.started().await;
    other.post("a", "insert").await.is_problem(409, "request-in-progress");
    other.is_as_new("a").await;
    stalled.go_on();
    late.await.unwrap().is_problem(503, "commit-unknown");
    assert_eq!(other.effects("a").await, 1);
}

/// What the layer sets for its transactions does not stay with the connections of the application.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pool_is_given_back_as_it_was() {
    let place = MySql::place().await;
    let process = Process::<MySql>::with(&place, 1, |layer| layer).await;
    process.post("a", "insert").await.is(201);
    assert_eq!(process.number("SELECT CAST(@@idle_transaction_timeout AS SIGNED)").await, 0);
}

const SET: &str = "SET @tenant = 'ann'";
const LOOK: &str = "SELECT CASE WHEN @tenant IS NULL THEN 1 ELSE (SELECT 1 UNION SELECT 2) END";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_of_the_pool_run() {
    sessions::hooks_of_the_pool_run::<MySql>(SET, LOOK, "SET @tenant = NULL").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_statement() {
    sessions::a_reset_statement::<MySql>(SET, LOOK, "SET @tenant = NULL").await;
}

/// The effect is committed, and duplicates learn that its answer was not retained.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_too_large_leaves_a_tombstone() {
    let place = MySql::place().await;
    let process = Process::<MySql>::start(&place).await;
    process.run("SET GLOBAL max_allowed_packet = 1048576").await;
    // Sessions take the limit over when they begin.
    let process = Process::<MySql>::with(&place, 4, |layer| layer.response_limit(8 << 20)).await;
    assert_eq!(process.post("a", "insert;long=2000000").await.is(201).body.len(), 2_000_000);
    process.post("a", "insert").await.is_problem(409, "response-not-retained");
    assert_eq!(process.effects("a").await, 1);
    process.run("SET GLOBAL max_allowed_packet = DEFAULT").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_reach_their_age() {
    sessions::connections_reach_their_age::<MySql>("CONNECTION_ID()").await;
}
