//! Six servers of a cluster: three that have the slots between them, and a replica of each.

mod hanging;
pub(crate) mod nodes;

use std::{
    collections::HashSet,
    future::ready,
    time::{Duration, Instant},
};

use redis::cluster::ClusterClient;
use tokio::time::timeout;
use tower_idempotency::{
    RedisStore,
    store::{Claimed, Filter, Finished, Origin, RecordKey, Settlement, State, Store, StoreAdmin, StoreErrorKind},
    testing::suite,
};

use self::nodes::{Nodes, slot};
use crate::{MINUTE, claim, granted, key, replays, settled, settlement};

async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what}, and does not");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_every_store() {
    let nodes = Nodes::start();
    let store = nodes.store().await;
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_with_a_client_of_the_applications() {
    let nodes = Nodes::start();
    let client = ClusterClient::new(nodes.urls()).unwrap();
    let store = RedisStore::builder().connect_cluster(client).await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

/// The access rules that the guide names suffice.
#[tokio::test(flavor = "multi_thread")]
async fn the_rules_with_no_more_rights_than_the_guide_says() {
    let nodes = Nodes::start();
    let guide = include_str!("../../docs/redis.md");
    let rule = guide.lines().find(|line| line.starts_with("ACL SETUSER")).unwrap();
    let further =
        guide.lines().find_map(|line| line.split_once("On a cluster it is these as well")?.1.split('`').nth(1));
    nodes.tell_all(&format!("{rule} {}", further.unwrap()));
    let store = RedisStore::connect(&nodes.url().replace("://", "://shop:password@")).await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

/// Records are listed and counted wherever they are, and large answers stay in their slot.
#[tokio::test(flavor = "multi_thread")]
async fn records_are_spread() {
    let nodes = Nodes::start();
    let store = nodes.store().await;
    for n in 0..200 {
        let (first, key) = (claim(), key(&n.to_string()));
        granted(&store, &key, &first).await;
        let payload = Some(vec![b'x'; if n % 2 == 0 { 10 } else { 65_536 }].into());
        let settlement = Settlement::new(first.claimant, payload.clone(), MINUTE);
        assert!(matches!(store.settle(&key, &settlement).await.unwrap(), Finished::Done));
        assert_eq!(store.claim(&key, &claim()).await.unwrap(), Claimed::Settled(payload, Origin::NONE));
    }
    for master in nodes.masters() {
        let records: usize = master.tell("DBSIZE").trim_start_matches(':').trim().parse().unwrap();
        assert!((30..120).contains(&records), "{records}");
    }
    assert_eq!(store.stats().await.unwrap().settled, 200);
    for filter in [Filter::All, Filter::State(State::Settled)] {
        let (mut after, mut listed) = (None, HashSet::new());
        loop {
            let page = store.list(filter, after, 7).await.unwrap();
            listed.extend(page.entries.into_iter().map(|entry| entry.key));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed.len(), 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_is_woken_by_a_message_in_the_slot() {
    let nodes = Nodes::start();
    let (store, other) = (nodes.store().await, nodes.store().await);
    for n in 0..8 {
        let (first, key) = (claim(), key(&n.to_string()));
        granted(&store, &key, &first).await;
        let waiting = {
            let (other, key, holder) = (other.clone(), key.clone(), first.claimant);
            tokio::spawn(async move { other.changed(&key, holder, MINUTE).await })
        };
        let owner = nodes.owner(slot(&key));
        eventually("somebody subscribes", async || {
            owner.tell("PUBSUB SHARDCHANNELS").lines().filter(|line| line.starts_with("idem{")).count() > 0
        })
        .await;
        assert!(matches!(store.settle(&key, &settlement(&first)).await.unwrap(), Finished::Done));
        tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap().unwrap();
    }
}

/// A waiter that gives up while it listens does not keep the others from being notified.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_keeps_no_message_of_the_others_back() {
    let nodes = Nodes::start();
    let (store, other) = (nodes.store().await, nodes.store().await);
    let (there, still): (Vec<_>, Vec<_>) =
        (0..40).map(|n| key(&n.to_string())).partition(|key| !nodes.owned_by_first(slot(key)));
    let first = claim();
    granted(&store, &there[0], &first).await;
    let waiting = {
        let (other, key, holder) = (other.clone(), there[0].clone(), first.claimant);
        tokio::spawn(async move {
            other.changed(&key, holder, MINUTE).await.unwrap();
            Instant::now()
        })
    };
    let owner = nodes.owner(slot(&there[0]));
    eventually("somebody subscribes", async || owner.tell("PUBSUB SHARDCHANNELS").contains("idem{")).await;
    nodes.masters()[0].pause();
    for key in &still[..3] {
        let _ = timeout(Duration::from_millis(20), other.changed(key, first.claimant, MINUTE)).await;
    }
    let began = Instant::now();
    assert!(matches!(store.settle(&there[0], &settlement(&first)).await.unwrap(), Finished::Done));
    let woken = timeout(MINUTE, waiting).await.unwrap().unwrap() - began;
    nodes.masters()[0].resume();
    // Less than the pause after which a record is looked at without a message.
    assert!(woken < Duration::from_millis(400), "after {woken:?}");
}

/// A slot goes from one master to another, key by key, while records in it are used.
#[tokio::test(flavor = "multi_thread")]
async fn a_slot_moves() {
    let nodes = Nodes::start();
    let store = nodes.store().await;
    let kept = key("kept");
    let moving = slot(&kept);
    let beside: Vec<_> =
        (0..).map(|n| key(&n.to_string())).filter(|key| slot(key) == moving).take(6).collect::<Vec<RecordKey>>();
    settled(&store, &kept).await;
    let running = claim();
    granted(&store, &beside[0], &running).await;

    let (from, to) = nodes.open_move(moving);
    replays(&store, &kept).await;
    // New records begin on the server that the slot moves to.
    let second = claim();
    granted(&store, &beside[1], &second).await;
    assert!(matches!(store.claim(&beside[1], &claim()).await.unwrap(), Claimed::Running { .. }));
    let large = Settlement::new(running.claimant, Some(vec![7; 65_536].into()), MINUTE);
    assert!(matches!(store.settle(&beside[0], &large).await.unwrap(), Finished::Done));
    assert!(matches!(store.settle(&beside[1], &settlement(&second)).await.unwrap(), Finished::Done));

    nodes.finish_move(moving, from, to).await;
    replays(&store, &kept).await;
    replays(&store, &beside[1]).await;
    assert_eq!(store.claim(&beside[0], &claim()).await.unwrap(), Claimed::Settled(large.payload, Origin::NONE));
    settled(&store, &beside[2]).await;
    assert_eq!(store.stats().await.unwrap().settled, 4);
}

/// A master dies: the others go on, its own slots fail for a while, with errors that pass, and then its replica has them.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_dies() {
    let mut nodes = Nodes::start();
    let store = RedisStore::builder().command_timeout(Duration::from_millis(500)).connect(&nodes.url()).await.unwrap();
    let keys: Vec<_> = (0..60).map(|n| key(&n.to_string())).collect();
    for key in &keys {
        settled(&store, key).await;
    }
    nodes.replicated().await;
    let (lost, others): (Vec<_>, Vec<_>) = keys.iter().partition(|key| nodes.owned_by_first(slot(key)));
    assert!(lost.len() > 5 && others.len() > 5);

    nodes.kill_first();
    for key in &others {
        replays(&store, key).await;
    }
    for key in &lost {
        eventually("a replica takes over", async || match store.claim(key, &claim()).await {
            Ok(claimed) => {
                assert_eq!(claimed, Claimed::Settled(Some("kept".into()), Origin::NONE));
                true
            }
            Err(error) => {
                assert!(error.is_temporary(), "{error:?}");
                false
            }
        })
        .await;
    }
    eventually("all is counted", async || store.stats().await.is_ok_and(|stats| stats.settled == 60)).await;
    settled(&store, &key("new")).await;
}

/// One that hangs keeps its connections open, and never says that another has its slots now.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_hangs() {
    let nodes = Nodes::start();
    let store = RedisStore::builder().command_timeout(Duration::from_millis(500)).connect(&nodes.url()).await.unwrap();
    let keys: Vec<_> = (0..30).map(|n| key(&n.to_string())).collect();
    for key in &keys {
        settled(&store, key).await;
    }
    nodes.replicated().await;
    let (lost, others): (Vec<_>, Vec<_>) = keys.iter().partition(|key| nodes.owned_by_first(slot(key)));

    nodes.masters()[0].pause();
    let error = store.claim(lost[0], &claim()).await.unwrap_err();
    assert!(error.is_temporary(), "{error:?}");
    for key in &others {
        replays(&store, key).await;
    }
    for key in &lost {
        eventually("a replica takes over", async || store.claim(key, &claim()).await.is_ok()).await;
        replays(&store, key).await;
    }
    // A store that is opened only now finds those that answer.
    replays(&nodes.store().await, lost[0]).await;
}

#[tokio::test]
async fn servers_that_are_away() {
    let error = RedisStore::connect("redis-cluster://:secret@127.0.0.1:1,127.0.0.1:2").await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}
