//! A name that leads to another server from one moment on, as that of a managed Redis does when its master is replaced.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::time::sleep;
use tower_idempotency::{
    RedisStore,
    store::{Claimed, Store, StoreErrorKind},
};

use crate::{claim, granted, key, proxy, replays, server::Server, settled};

/// The old master stays as a replica, and keeps the connections that it has.
#[tokio::test]
async fn a_master_that_becomes_a_replica_is_left_for_the_next_one() {
    let servers = [Server::start(&[]), Server::start(&[])];
    let leads = Arc::new(AtomicU16::new(servers[0].port()));
    let store = RedisStore::connect(&proxy::leads_to(Arc::clone(&leads)).await).await.unwrap();
    settled(&store, &key("kept")).await;

    leads.store(servers[1].port(), Relaxed);
    assert!(servers[0].tell(&format!("REPLICAOF 127.0.0.1 {}", servers[1].port())).starts_with("+OK"));
    let mut tries = 0;
    loop {
        match store.claim(&key("new"), &claim()).await {
            Ok(claimed) => break assert!(matches!(claimed, Claimed::Granted(_)), "{claimed:?}"),
            Err(error) => {
                assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error:?}");
            }
        }
        tries += 1;
        assert!(tries < 200, "it stays with the old one");
        sleep(Duration::from_millis(50)).await;
    }
}

/// An application that means a replica gets it.
#[tokio::test]
async fn a_replica_is_not_connected_to_at_each_refusal() {
    let server = Server::start(&[]);
    let store = server.store().await;
    settled(&store, &key("kept")).await;
    assert!(server.tell("REPLICAOF 127.0.0.1 1").starts_with("+OK"));
    let connections = || {
        let stats = server.tell("INFO stats");
        let count = stats.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
        count.trim().parse::<usize>().unwrap()
    };
    let before = connections();
    for _ in 0..200 {
        assert!(store.claim(&key("new"), &claim()).await.is_err());
        replays(&store, &key("kept")).await;
    }
    // Its own two, and one a second.
    assert!(connections() - before < 20, "{}", connections() - before);
    assert!(server.tell("REPLICAOF NO ONE").starts_with("+OK"));
    granted(&store, &key("new"), &claim()).await;
}
