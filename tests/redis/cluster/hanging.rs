//! Masters of a cluster on which nothing is answered, and those that are back.

use std::time::Duration;

use axum::{Router, http::StatusCode};
use tokio::time::{Instant, sleep, timeout};
use tower_idempotency::{
    RedisStore,
    store::{Claimed, Store},
};

use super::nodes::{Nodes, slot};
use crate::{
    MINUTE, claim, granted, key,
    proxy::Link,
    settled,
    unresponsive_server::{LENIENCY, SOON, app, pay},
};

/// Store timeouts and leases, in milliseconds.
const LIMITS: [(u64, u64); 4] = [(500, 1_500), (200, 30_000), (5_000, 1_500), (5_000, 30_000)];

async fn app_within((store_timeout, lease): (u64, u64), url: &str) -> Router {
    let store = RedisStore::connect(url).await.unwrap().namespace(&format!("{store_timeout} {lease}"));
    let app = app(&store, Duration::from_millis(store_timeout), Duration::from_millis(lease));
    for n in 0..20 {
        assert_eq!(pay(&app, &format!("before-{n}")).await, StatusCode::OK);
    }
    app
}

/// Makes clients reach each server by a link that can go silent.
async fn links_to(nodes: &Nodes) -> Vec<Link> {
    let mut links = Vec::new();
    for server in nodes.all() {
        let link = Link::to(server.port()).await;
        assert!(server.tell(&format!("CONFIG SET cluster-announce-port {}", link.port())).starts_with("+OK"));
        links.push(link);
    }
    let named = |answer: &str| links.iter().all(|link| answer.contains(&format!(":{}\r\n", link.port())));
    nodes.wait("all name the links", |server| named(&server.tell("CLUSTER SLOTS")));
    links
}

/// When a request was served that was not served at first: its record is on the server that hangs. One that waits in
/// patience may be served without a refusal.
async fn served_again(app: Router) -> Instant {
    for n in 0.. {
        let (name, began) = (n.to_string(), Instant::now());
        let mut held_up = false;
        while pay(&app, &name).await != StatusCode::OK {
            held_up = true;
            sleep(Duration::from_millis(20)).await;
        }
        if held_up || began.elapsed() > Duration::from_millis(200) {
            break;
        }
    }
    Instant::now()
}

/// The others are busy meanwhile. However short the time is that a route gives the store, and however long a command may
/// take, it is back soon after the failover.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_hangs_while_the_others_answer() {
    let mut nodes = Nodes::start();
    let mut apps = Vec::new();
    for limits in LIMITS {
        apps.push((limits, app_within(limits, &nodes.url()).await));
    }
    let store = nodes.store().await;
    let others: Vec<_> = (0..30).map(|n| key(&n.to_string())).filter(|key| !nodes.owned_by_first(slot(key))).collect();
    let busy = tokio::spawn(async move {
        loop {
            for key in &others {
                let _ = store.claim(key, &claim()).await;
            }
            sleep(Duration::from_millis(5)).await;
        }
    });
    nodes.kill_master(0, |master, _| master.pause());
    let back: Vec<_> = apps.into_iter().map(|(limits, app)| (limits, tokio::spawn(served_again(app)))).collect();
    nodes.wait_for_promotion(0);
    let promoted = Instant::now();
    for ((store_timeout, lease), back) in back {
        let late = timeout(MINUTE, back).await.unwrap().unwrap().saturating_duration_since(promoted);
        println!("store timeout {store_timeout} ms, lease {lease} ms: {late:?} after the failover");
        assert!(late < SOON + LENIENCY, "store timeout {store_timeout} ms, lease {lease} ms: {late:?}");
    }
    busy.abort();
}

/// The links to one of the servers forget their connections, as a firewall does that was started again.
#[tokio::test(flavor = "multi_thread")]
async fn connections_to_one_server_go_silent_and_new_ones_are_served() {
    let nodes = Nodes::start();
    let links = links_to(&nodes).await;
    let hosts: Vec<_> = links.iter().map(|link| format!("127.0.0.1:{}", link.port())).collect();
    for limits in LIMITS {
        let app = app_within(limits, &format!("redis-cluster://{}", hosts.join(","))).await;
        links[0].go_silent();
        let silent = Instant::now();
        for n in 0..20 {
            while pay(&app, &n.to_string()).await != StatusCode::OK {
                assert!(silent.elapsed() < MINUTE, "{limits:?}: it does not come back");
                sleep(Duration::from_millis(20)).await;
            }
        }
        println!("{limits:?}: all back after {:?}", silent.elapsed());
        assert!(silent.elapsed() < SOON + LENIENCY, "{limits:?}: after {:?}", silent.elapsed());
    }
}

/// A master that stood still for a while learns from the others that it was replaced, some milliseconds after it goes on. A
/// process that was idle meanwhile has not noticed, and asks it first.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_process_does_not_keep_to_an_old_master() {
    let mut nodes = Nodes::start();
    let (busy, idle) = (nodes.store().await, nodes.store().await);
    let keys: Vec<_> =
        (0..600).map(|n| key(&n.to_string())).filter(|key| nodes.owned_by_first(slot(key))).take(61).collect();
    settled(&busy, &keys[60]).await;
    assert!(matches!(idle.claim(&keys[60], &claim()).await.unwrap(), Claimed::Settled(..)));
    nodes.kill_master(0, |master, _| master.pause());
    nodes.wait_for_promotion(0);
    let began = Instant::now();
    while busy.claim(&keys[60], &claim()).await.is_err() {
        assert!(began.elapsed() < MINUTE, "the busy one does not go on");
    }
    for name in &keys[..60] {
        granted(&busy, name, &claim()).await;
    }
    nodes.resume_replaced(0);
    let (resumed, mut twice) = (Instant::now(), Vec::new());
    for name in &keys[..60] {
        if matches!(idle.claim(name, &claim()).await, Ok(Claimed::Granted(_))) {
            twice.push(resumed.elapsed());
        }
        sleep(Duration::from_millis(20)).await;
    }
    println!("of 60 keys were granted by both masters: {twice:?} after it went on");
    let late = |after: &Duration| *after > Duration::from_millis(500);
    assert!(twice.len() <= 3 && !twice.iter().any(late), "granted by both masters: {twice:?} after it went on");
}
