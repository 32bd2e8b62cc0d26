//! A master and two replicas, watched by three sentinels.

pub(crate) mod group;

use std::{future::ready, time::Duration};

use axum::http::StatusCode;
use tokio::time::Instant;
use tower_idempotency::{
    RedisStore,
    store::{Claimed, Store, StoreAdmin, StoreErrorKind},
    testing::suite,
};

use self::group::Group;
use crate::{
    claim,
    connecting::Heard,
    granted, key, replays, settled,
    unresponsive_server::{app, pay, served_after},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_every_store() {
    let group = Group::start().await;
    let store = RedisStore::connect(&group.url()).await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

/// The master dies and a replica is made one: errors pass, and what was replicated is replayed.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_dies() {
    let mut group = Group::start().await;
    let store = RedisStore::connect(&group.url()).await.unwrap();
    for n in 0..50 {
        settled(&store, &key(&n.to_string())).await;
    }
    group
        .wait("replicas follow", |group| {
            group.servers[1..].iter().all(|server| server.tell("DBSIZE").starts_with(":50"))
        })
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;

    group.servers[0].kill();
    let mut tries = 0;
    loop {
        match store.claim(&key("new"), &claim()).await {
            Ok(claimed) => break assert!(matches!(claimed, Claimed::Granted(_)), "{claimed:?}"),
            Err(error) => assert!(error.is_temporary(), "{error:?}"),
        }
        tries += 1;
        assert!(tries < 600, "no replica becomes a master");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for n in 0..50 {
        replays(&store, &key(&n.to_string())).await;
    }
    assert_eq!(store.stats().await.unwrap().settled, 50);
}

/// However short the time is that a route gives the store, and however long a command may take.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_hangs() {
    let mut group = Group::start().await;
    let millis = Duration::from_millis;
    let limits = [(500, 1_500), (200, 30_000), (5_000, 1_500), (5_000, 30_000)];
    let mut apps = Vec::new();
    for (store_timeout, lease) in limits {
        let store = RedisStore::connect(&group.url()).await.unwrap().namespace(&format!("{store_timeout} {lease}"));
        apps.push(app(&store, millis(store_timeout), millis(lease)));
    }
    for app in &apps {
        assert_eq!(pay(app, "warm").await, StatusCode::OK);
    }
    group.servers[0].pause();
    // They go on being asked meanwhile.
    let back: Vec<_> =
        apps.into_iter().map(|app| tokio::spawn(async move { (served_after(&app).await, Instant::now()) })).collect();
    group.wait_for_promotion().await;
    let named = Instant::now();
    for ((store_timeout, lease), back) in limits.into_iter().zip(back) {
        let (_, served) = back.await.unwrap();
        let late = served.saturating_duration_since(named);
        println!("store timeout {store_timeout} ms, lease {lease} ms: {late:?} after the failover");
        assert!(late < millis(1_500), "store timeout {store_timeout} ms, lease {lease} ms: {late:?}");
    }
    group.servers.iter().for_each(crate::server::Server::resume);
}

/// A master that stood still for a while does not know that it was replaced. A process that was idle meanwhile has not
/// noticed either, and asks the sentinels before it asks a master.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_process_does_not_keep_to_an_old_master() {
    let mut group = Group::start().await;
    let (busy, idle) =
        (RedisStore::connect(&group.url()).await.unwrap(), RedisStore::connect(&group.url()).await.unwrap());
    for store in [&busy, &idle] {
        settled(store, &key(&claim().claimant.to_bytes()[0].to_string())).await;
    }
    group.servers[0].pause();
    group.wait_for_promotion().await;
    let promoted = served_after(&app(&busy, Duration::from_secs(5), Duration::from_secs(30))).await;
    println!("the busy one goes on after {promoted:?}");
    group.servers.iter().for_each(crate::server::Server::resume);
    let mut twice = 0;
    for n in 0..60 {
        let name = key(&format!("new {n}"));
        granted(&busy, &name, &claim()).await;
        twice += u32::from(matches!(idle.claim(&name, &claim()).await, Ok(Claimed::Granted(_))));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(twice, 0, "of 60 keys were granted by both masters");
}

#[tokio::test]
async fn a_master_that_goes_on_without_replicas_is_warned_of() {
    for guarded in [false, true] {
        let group = Group::start().await;
        if guarded {
            group.servers.iter().for_each(|server| drop(server.tell("CONFIG SET min-replicas-to-write 1")));
        }
        let heard = Heard::default();
        let guard = tracing::subscriber::set_default(heard.clone());
        RedisStore::connect(&group.url()).await.unwrap();
        drop(guard);
        let warnings = heard.0.lock().unwrap().clone();
        let told = warnings.iter().filter(|warning| warning.contains("min-replicas-to-write")).count();
        assert_eq!(told, usize::from(!guarded), "{warnings:?}");
    }
}

#[tokio::test]
async fn sentinels_that_are_away() {
    let error = RedisStore::connect("redis-sentinel://:secret@127.0.0.1:1,127.0.0.1:2/shop").await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}
