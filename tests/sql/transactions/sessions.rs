//! What a handler leaves on a connection does not reach the next one.

#[cfg(any(feature = "mysql", feature = "postgres"))]
use std::time::{Duration, Instant};
use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};

use sqlx::pool::PoolOptions;
use tower_idempotency::{Once, Operation, sql::SqlStore};

use super::process::Process;
use crate::database::TestDatabase;

const REQUESTS: u32 = 10;

/// The hooks of the application's pool see each connection before a handler has it and after, and take back what it has
/// set. `set` leaves something in the session, `look` fails if it is there, `reset` takes it back.
pub(crate) async fn hooks_of_the_pool_run<D: TestDatabase>(set: &str, look: &str, reset: &'static str) {
    let place = D::place().await;
    let counts = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let (before, after) = (Arc::clone(&counts), Arc::clone(&counts));
    let options = PoolOptions::<D>::new()
        .max_connections(3)
        .before_acquire(move |_, _| {
            before[0].fetch_add(1, Relaxed);
            Box::pin(async { Ok(true) })
        })
        .after_release(move |connection, _| {
            after[1].fetch_add(1, Relaxed);
            Box::pin(async move { D::say(connection, reset).await.map(|()| true) })
        });
    // SQLite's file.
    drop(D::pool(&place, 1).await.acquire().await.unwrap());
    let pool = options.connect_with(D::url(&place).parse().unwrap()).await.unwrap();
    let process = Process::<D>::on(&place, pool, |layer| layer).await;
    let seen = || [&counts[0], &counts[1]].map(|count| count.load(Relaxed));
    let first = seen();
    nothing_is_left(&process, set, look).await;
    for (first, last) in first.into_iter().zip(seen()) {
        assert!(last - first >= REQUESTS, "{first} to {last}: a hook has not seen each of the connections");
    }
}

/// In a pool of the store's own a statement of the application's does it.
pub(crate) async fn a_reset_statement<D: TestDatabase>(set: &str, look: &str, reset: &str) {
    let place = D::place().await;
    let builder = SqlStore::<D>::builder().max_connections(3).reset_statement(reset);
    let store = D::build(builder, &D::url(&place)).await;
    let process = Process::<D>::of(&place, store, |layer| layer).await;
    nothing_is_left(&process, set, look).await;
}

/// Neither of requests nor of functions. `look` does fail in the session that has it.
async fn nothing_is_left<D: TestDatabase>(process: &Process<D>, set: &str, look: &str) {
    assert!(process.spawn("both", &format!("run={set};run={look}")).await.unwrap_err().is_panic());
    let once = Once::transactional(process.store.clone(), "job");
    for n in 0..REQUESTS {
        process.post(&format!("set-{n}"), &format!("insert;run={set}")).await.is(201);
        process.post(&format!("look-{n}"), &format!("insert;run={look}")).await.is(201);
        let set = set.to_owned();
        let ran = once.run(&n.to_string(), move |operation: Operation| async move {
            let mut tx = operation.transaction::<D>().unwrap();
            D::say(&mut tx, &set).await.unwrap();
            Ok::<_, Infallible>(())
        });
        assert_eq!(ran.await, Ok(()));
        process.post(&format!("look-again-{n}"), &format!("insert;run={look}")).await.is(201);
    }
}

/// Handlers do not keep a connection from ending at its age. `session` is the session's number as a text.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) async fn connections_reach_their_age<D: TestDatabase>(session: &str) {
    const LIFE: Duration = Duration::from_millis(300);

    let place = D::place().await;
    let options = PoolOptions::<D>::new().max_connections(3).max_lifetime(LIFE);
    let pool = options.connect_with(D::url(&place).parse().unwrap()).await.unwrap();
    let process = Process::<D>::on(&place, pool, |layer| layer).await;
    let began = Instant::now();
    let notes = async |when: &str| {
        for n in 0..5 {
            let note = format!("run=INSERT INTO effects VALUES (CONCAT('{when} ', {session}))");
            process.post(&format!("{when}-{n}"), &note).await.is(201);
        }
    };
    notes("1st").await;
    for n in 0.. {
        process.post(&n.to_string(), "insert").await.is(201);
        if began.elapsed() > 3 * LIFE {
            break;
        }
    }
    notes("2nd").await;
    let both = "SELECT COUNT(*) FROM effects a JOIN effects b ON SUBSTR(a.name, 5) = SUBSTR(b.name, 5) \
                WHERE a.name LIKE '1st %' AND b.name LIKE '2nd %'";
    assert_eq!(process.number(both).await, 0, "a session that is older than it may be");
}
