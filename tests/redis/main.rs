//! The Redis store keeps the rules of every store, and goes through what a server goes through.
//!
//! Each test starts a `redis-server` of its own.

#[cfg(feature = "memory")]
mod cached_store;
#[cfg(feature = "redis-cluster")]
mod cluster;
mod commands;
mod conformance;
mod connecting;
mod dns_changes;
mod frozen_formats;
mod large_answers;
mod load;
mod lost_on_failover;
mod newer_servers;
mod outages;
mod ownership;
mod proxy;
mod records;
mod refused_writes;
#[cfg(feature = "redis-sentinel")]
mod sentinel;
mod server;
mod stale_grants;
#[cfg(feature = "redis-tls")]
mod tls;
mod torn_reads;
mod unresponsive_server;
mod waiting;
#[path = "../http/common/walk.rs"]
mod walk;
#[path = "../http/common/windows.rs"]
mod windows;
#[path = "../http/common/written_formats.rs"]
mod written_formats;

use std::time::{Duration, SystemTime};

use tower_idempotency::{
    RedisStore,
    store::{Claim, Claimed, Finished, Granted, Origin, RecordKey, Release, Settlement, Store},
};

const MINUTE: Duration = Duration::from_secs(60);

fn key(name: &str) -> RecordKey {
    RecordKey::new("/orders/{id}", Some("ann"), name).unwrap()
}

fn claim() -> Claim {
    Claim::new(MINUTE, MINUTE)
}

fn settlement(claim: &Claim) -> Settlement {
    Settlement::new(claim.claimant, Some("kept".into()), MINUTE)
}

fn release(claim: &Claim) -> Release {
    Release::new(claim.claimant, MINUTE)
}

async fn granted(store: &impl Store, key: &RecordKey, claim: &Claim) {
    assert_eq!(store.claim(key, claim).await.unwrap(), Claimed::Granted(Granted::first(claim)));
}

async fn settled(store: &RedisStore, key: &RecordKey) -> Claim {
    let first = claim();
    granted(store, key, &first).await;
    assert!(matches!(store.settle(key, &settlement(&first)).await.unwrap(), Finished::Done));
    first
}

/// Whether two moments are the same, but for the way to the server: a plain command says how long a run took.
fn is_near(one: SystemTime, other: SystemTime) -> bool {
    one.max(other).duration_since(one.min(other)).is_ok_and(|between| between < Duration::from_secs(1))
}

async fn replays(store: &impl Store, key: &RecordKey) {
    assert_eq!(store.claim(key, &claim()).await.unwrap(), Claimed::Settled(Some("kept".into()), Origin::NONE));
}
