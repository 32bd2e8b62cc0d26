//! A master and two replicas, watched by three sentinels.

pub(crate) mod group;

use std::{future::ready, time::Duration};

use tower_idempotency::{
    RedisStore, StoreErrorKind,
    store::{Claimed, Operator, Store},
    testing::suite,
};

use self::group::Group;
use crate::{claim, key, replays, settled};

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

#[tokio::test]
async fn sentinels_that_are_away() {
    let error = RedisStore::connect("redis-sentinel://:secret@127.0.0.1:1,127.0.0.1:2/shop").await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}
