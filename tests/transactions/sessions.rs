//! What a handler leaves on a connection does not reach the next one.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};

use sqlx::pool::PoolOptions;
use tower_idempotency::store::SqlStore;

use crate::lab::{Lab, Process};

const REQUESTS: u32 = 10;

/// The hooks of the application's pool see each connection before a handler has it and after, and take back what it has
/// set. `set` leaves something in the session, `look` fails if it is there, `reset` takes it back.
pub(crate) async fn hooks_of_the_pool_run<D: Lab>(set: &str, look: &str, reset: &'static str) {
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
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) async fn a_reset_statement<D: Lab>(
    connect: impl AsyncFnOnce(tower_idempotency::store::SqlStoreBuilder<D>, String) -> SqlStore<D>,
    set: &str,
    look: &str,
    reset: &str,
) {
    let place = D::place().await;
    let builder = SqlStore::<D>::builder().max_connections(3).reset_statement(reset);
    let store = connect(builder, D::url(&place)).await;
    let process = Process::<D>::of(&place, store, |layer| layer).await;
    nothing_is_left(&process, set, look).await;
}

async fn nothing_is_left<D: Lab>(process: &Process<D>, set: &str, look: &str) {
    for n in 0..REQUESTS {
        process.post(&format!("set-{n}"), &format!("insert;run={set}")).await.is(201);
        process.post(&format!("look-{n}"), &format!("insert;run={look}")).await.is(201);
    }
}
