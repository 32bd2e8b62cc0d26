//! What a request costs each of three masters beside one, how evenly keys are spread, and what a cache saves.
//!
//! ```console
//! $ cargo bench --all-features --bench redis_cluster
//! ```
//!
//! It starts its servers on loopback. All of them share the processors of one machine, so that what three masters could
//! bear is not measured as a rate, but by what each needs for a request while only it is asked, and by how many it is asked.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../tests/redis/cluster/nodes.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod nodes;
#[path = "../tests/redis/server.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod server;

use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tower_idempotency::{
    MemoryStore, RedisStore,
    store::{CachedStore, Claim, Claimed, RecordKey, Settlement, Store},
};

use self::{
    nodes::{Nodes, share_of, slot},
    server::Server,
};

const DAY: Duration = Duration::from_secs(86_400);
const ROUNDS: usize = 5;
const REQUESTS: usize = 6_000;
const AT_ONCE: usize = 16;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let alone = Server::start(&[]);
    // Each of three has one too, which works beside it on this machine.
    let address = format!("127.0.0.1 {}", alone.port());
    let _replica = Server::start(&["--repl-diskless-sync-delay", "0", "--replicaof", &address]);
    assert!(alone.is_confirmed_by(1, "confirmed"));
    let nodes = Nodes::start();
    let (store, cluster) = (alone.store().await, nodes.store().await);

    // The best of several rounds in turn, since whatever else the machine does can only add.
    let (mut one, mut three) = (f64::MAX, [f64::MAX; 3]);
    for _ in 0..ROUNDS {
        one = one.min(requests(&store, &alone, |_| true).await);
        for (n, (best, master)) in three.iter_mut().zip(nodes.masters()).enumerate() {
            *best = best.min(requests(&cluster, master, |key| share_of(slot(key)) == n).await);
        }
    }
    for _ in 0..REQUESTS {
        request(&cluster, &key(&random())).await;
    }
    let records = nodes.masters().iter().map(records).collect::<Vec<_>>();
    let all: f64 = records.iter().sum();
    println!("{:<16} {:>14} {:>8} {:>14}", "", "us a request", "keys", "us a key of all");
    println!("{:<16} {one:>14.2} {:>7.1}% {one:>14.2}", "one master", 100.0);
    for (n, (own, records)) in three.iter().zip(&records).enumerate() {
        let share = records / all;
        println!("{:<16} {own:>14.2} {:>7.1}% {:>14.2}", format!("{} of three", n + 1), share * 100.0, own * share);
    }

    let hot_key = key("hot");
    request(&store, &hot_key).await;
    let front = CachedStore::new(MemoryStore::new(), store.clone());
    let (mut without, mut with) = ((f64::MAX, f64::MAX), (f64::MAX, f64::MAX));
    for _ in 0..ROUNDS {
        without = least(without, replays(&store, &alone, &hot_key).await);
        with = least(with, replays(&front, &alone, &hot_key).await);
    }
    println!("\n{:<22} {:>8} {:>14}", "replays of a hot key", "p50 us", "us a request");
    println!("{:<22} {:>8.2} {:>14.2}", "from Redis", without.0, without.1);
    println!("{:<22} {:>8.2} {:>14.2}", "memory in front of it", with.0, with.1);
}

/// What first requests keep a server busy for, each, if they are its own.
async fn requests(store: &RedisStore, server: &Server, is_own: impl Fn(&RecordKey) -> bool) -> f64 {
    server.tell("FLUSHALL");
    server.tell("CONFIG RESETSTAT");
    let keys = std::iter::repeat_with(|| key(&random())).filter(is_own).take(REQUESTS);
    let mut tasks = JoinSet::new();
    for key in keys {
        if tasks.len() == AT_ONCE {
            tasks.join_next().await.unwrap().unwrap();
        }
        let store = store.clone();
        tasks.spawn(async move { request(&store, &key).await });
    }
    tasks.join_all().await;
    let busy = spent(server) / REQUESTS as f64;
    server.tell("FLUSHALL");
    busy
}

/// One key, over and over: how long it takes, and what the server is busy for, each.
async fn replays(store: &impl Store, server: &Server, key: &RecordKey) -> (f64, f64) {
    server.tell("CONFIG RESETSTAT");
    let mut times = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        let began = Instant::now();
        let claimed = store.claim(key, &Claim::new(DAY, DAY)).await.unwrap();
        times.push(began.elapsed());
        assert!(matches!(claimed, Claimed::Settled(Some(_), _)));
    }
    times.sort_unstable();
    (times[REQUESTS / 2].as_secs_f64() * 1e6, spent(server) / REQUESTS as f64)
}

fn least(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0.min(b.0), a.1.min(b.1))
}

async fn request(store: &impl Store, key: &RecordKey) {
    let claim = Claim::new(DAY, DAY);
    assert!(matches!(store.claim(key, &claim).await.unwrap(), Claimed::Granted(_)));
    let settlement = Settlement::new(claim.claimant, Some(vec![b'x'; 300].into()), DAY);
    store.settle(key, &settlement).await.unwrap();
}

fn key(name: &str) -> RecordKey {
    RecordKey::new("/bench", Some("ann"), name).unwrap()
}

fn random() -> String {
    format!("{:032x}", u128::from_be_bytes(Claim::new(DAY, DAY).claimant.to_bytes()))
}

fn records(server: &Server) -> f64 {
    server.tell("DBSIZE").trim_start_matches(':').trim().parse().unwrap()
}

/// The microseconds that a server says it spent on claims and settlements.
fn spent(server: &Server) -> f64 {
    let stats = server.tell("INFO commandstats");
    ["set", "evalsha"].iter().map(|command| of(&stats, command)).sum()
}

fn of(stats: &str, command: &str) -> f64 {
    let name = format!("cmdstat_{command}:");
    let line = stats.lines().find(|line| line.starts_with(&name)).unwrap_or_default();
    line.split("usec=").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or_default()
}
