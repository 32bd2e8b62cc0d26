//! Many who wait for one record.

use std::time::Duration;

use tokio::{task::JoinSet, time::sleep};
use tower_idempotency::store::{Claimed, Store};

use super::{
    races::{MINUTE, claim, key, settlement},
    store_on,
};
use crate::{counting::statements_about, database::TestDatabase};

/// 3,000 requests of one process wait for a key that another process runs: they share a look at a time, at most ten a
/// second, and all learn of the end.
pub(super) async fn many_wait_for_one<D: TestDatabase>() {
    let place = D::place().await;
    let (runner, waiters) = (store_on::<D>(&place).await, store_on::<D>(&place).await);
    let (key, running) = (key("waited-for"), claim());
    assert!(matches!(runner.claim(&key, &running).await.unwrap(), Claimed::Granted(_)));
    let mut waiting = JoinSet::new();
    let looks = statements_about("SELECT claimant FROM");
    for _ in 0..3_000 {
        let (store, key, holder) = (waiters.clone(), key.clone(), running.claimant);
        waiting.spawn(async move { store.changed(&key, holder, MINUTE).await });
    }
    sleep(Duration::from_secs(3)).await;
    let first = looks();
    assert!((1..=30).contains(&first), "{first} looks in three seconds");
    assert_eq!(waiting.len(), 3_000);
    assert!(waiting.try_join_next().is_none(), "nobody has heard of an end yet");

    runner.settle(&key, &settlement(&running)).await.unwrap();
    while let Some(ended) = waiting.join_next().await {
        ended.unwrap().unwrap();
    }
    println!("{first} looks in three seconds, {} in all", looks());
    // Nobody is left, so nobody looks.
    sleep(Duration::from_secs(1)).await;
    let after = looks();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(looks(), after);
}
