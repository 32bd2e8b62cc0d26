//! On PostgreSQL.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use sqlx::{PgConnection, PgPool, Postgres};
use tower::{Layer, ServiceExt, service_fn};
use tower_idempotency::{
    IdempotencyLayer,
    consumer::{Action, Consumed},
};

use super::{
    crashes,
    messages_and_functions::{self, End, Order},
    process::Process,
    sessions, what_holds_everywhere,
};
use crate::database::{Database, TestDatabase, postgres::connect_with};

async fn with(place: &Database, connections: u32, settings: &[(&str, &str)]) -> PgPool {
    connect_with(&Postgres::url(place), connections, settings).await
}

what_holds_everywhere!(Postgres);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_is_lost() {
    crashes::a_commit_whose_answer_is_lost::<Postgres>().await;
}

/// If the insert fails as a serialization failure, it is begun anew, and no caller sees it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stricter_isolation() {
    let place = Postgres::place().await;
    for level in ["repeatable read", "serializable"] {
        let strict = [("default_transaction_isolation", level)];
        let one = Process::<Postgres>::on(&place, with(&place, 8, &strict).await, |layer| layer).await;
        let other = Process::<Postgres>::on(&place, with(&place, 8, &strict).await, |layer| layer).await;
        for key in 0..20 {
            let key = format!("{level} {key}").replace(' ', "-");
            let racers: Vec<_> = (0..10).map(|n| [&one, &other][n % 2].spawn(&key, "insert")).collect();
            for racer in racers {
                let told = racer.await.unwrap();
                // A serialization failure at the commit is the handler's to repeat.
                assert!([201, 409, 503].contains(&told.status.as_u16()), "{told:?}");
            }
            let retry = one.post(&key, "insert").await;
            assert!(retry.is(201).replayed || one.effects(&key).await == 1);
            assert_eq!(one.effects(&key).await, 1, "{key}");
        }
    }
}

/// A process that stands still keeps its key for as long as the lease says; what it does later is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stalled_handler_is_overtaken_and_undone() {
    let place = Postgres::place().await;
    let stalled = Process::<Postgres>::with(&place, 4, |layer| layer.lease(Duration::from_millis(400))).await;
    let other = Process::<Postgres>::start(&place).await;
    let late = stalled.spawn("a", "insert;gate");
    stalled.started().await;
    other.post("a", "insert").await.is_problem(409, "request-in-progress");
    other.is_as_new("a").await;
    stalled.go_on();
    late.await.unwrap().is_problem(503, "commit-unknown");
    assert_eq!(other.effects("a").await, 1);
    assert!(stalled.post("a", "insert").await.is(201).replayed);
}

/// A writer of the same key without the lock of this crate makes others wait, but not for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_scheme_of_locks_is_not_waited_for_for_ever() {
    let place = Postgres::place().await;
    let process = Process::<Postgres>::with(&place, 8, |layer| layer.store_timeout(Duration::from_millis(400))).await;
    process.post("a", "insert").await.is(201);
    process.run("CREATE TABLE copied AS SELECT * FROM idempotency_records").await;
    process.run("DELETE FROM idempotency_records").await;
    let mut foreign = with(&place, 1, &[]).await.begin().await.unwrap();
    Postgres::say(&mut foreign, "INSERT INTO idempotency_records SELECT * FROM copied").await.unwrap();
    process.post("a", "insert").await.is_problem(503, "store-unavailable");
    foreign.commit().await.unwrap();
    assert!(process.post("a", "insert").await.is(201).replayed);
    assert_eq!(process.effects("a").await, 1);
}

/// The server notices that its client is gone within the query, not at its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_gone_within_a_query() {
    let place = Postgres::place().await;
    let process = Process::<Postgres>::with(&place, 4, IdempotencyLayer::cancel_on_disconnect).await;
    let client = process.spawn("a", "insert;run=SELECT pg_sleep(60)");
    let sleeping =
        "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' AND query NOT LIKE '%activity%'";
    while process.number(sleeping).await == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    client.abort();
    let began = Instant::now();
    process.is_as_new("a").await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

const SET: &str = "SET app.tenant = 'ann'";
const LOOK: &str = "SELECT 1 / (CASE WHEN COALESCE(current_setting('app.tenant', true), '') = '' THEN 1 ELSE 0 END)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_of_the_pool_run() {
    sessions::hooks_of_the_pool_run::<Postgres>(SET, LOOK, "RESET ALL").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_statement() {
    sessions::a_reset_statement::<Postgres>(SET, LOOK, "RESET ALL; RESET ROLE").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_reach_their_age() {
    sessions::connections_reach_their_age::<Postgres>("pg_backend_pid()").await;
}

/// Two that have read what the other has written: the database takes one of them, and finds out at the commit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_that_loses_at_the_commit_is_given_back() {
    async fn read_and_write(connection: &mut PgConnection) {
        Postgres::tell(connection, "SELECT COUNT(*) FROM skew").await.unwrap();
        Postgres::say(connection, "INSERT INTO skew VALUES (1)").await.unwrap();
    }

    let place = Postgres::place().await;
    let strict = [("default_transaction_isolation", "serializable")];
    let process = Process::<Postgres>::on(&place, with(&place, 8, &strict).await, |layer| layer).await;
    process.run("CREATE TABLE skew (n INTEGER)").await;
    let (others, contested) = (with(&place, 1, &strict).await, Arc::new(AtomicBool::new(true)));
    let service = service_fn(move |order: Order| {
        let (others, contested) = (others.clone(), Arc::clone(&contested));
        async move {
            let mut tx = order.operation.unwrap().transaction::<Postgres>().unwrap();
            read_and_write(&mut tx).await;
            if contested.swap(false, Relaxed) {
                let mut other = others.begin().await.unwrap();
                read_and_write(&mut other).await;
                other.commit().await.unwrap();
            }
            Ok::<_, &'static str>(())
        }
    });
    let layer = messages_and_functions::consumer(&process);
    let deliver = async || layer.layer(service.clone()).oneshot(Order::new("a", End::Pays)).await.unwrap();
    let lost = deliver().await;
    assert!(matches!(lost, Consumed::CommitUnknown { .. }), "{lost:?}");
    assert!(matches!(lost.action(), Action::Requeue { .. }));
    assert_eq!(process.number("SELECT COUNT(*) FROM skew").await, 1, "the other's");
    assert_eq!(deliver().await, Consumed::Executed(()));
    assert_eq!(deliver().await, Consumed::AlreadyDone);
    assert_eq!(process.number("SELECT COUNT(*) FROM skew").await, 2);
}
