//! What a request costs each of three masters beside one, how evenly keys are spread, and what a front saves.
//!
//! ```console
//! $ cargo bench --all-features --bench redis_cluster
//! ```
//!
//! It starts its servers on loopback. They share the processors of one machine, so that what three of them could bear is
//! told by the time that the busiest needs for a request, and not by a rate.
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
    MemoryStore, RecordKey, RedisStore,
    store::{Claim, Claimed, Front, Settlement, Store},
};

use self::{nodes::Nodes, server::Server};

const DAY: Duration = Duration::from_secs(86_400);
const ROUNDS: usize = 5;
const REQUESTS: usize = 12_000;
const AT_ONCE: usize = 16;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let server = Server::start(&[]);
    let store = server.store().await;
    println!("{:<14} {:>28} {:>16} {:>16}", "", "server us a request, by node", "of the busiest", "keys, by node");
    measure("one master", &store, std::slice::from_ref(&server)).await;
    {
        let nodes = Nodes::start();
        measure("three masters", &nodes.store().await, nodes.masters()).await;
    }
    server.tell("FLUSHALL");
    request(&store, &key("hot")).await;
    println!("\n{:<22} {:>10} {:>22}", "replays of a hot key", "p50 us", "server us a request");
    hot("from Redis", &store, &server).await;
    hot("memory in front of it", &Front::new(MemoryStore::new(), store), &server).await;
}

/// First requests: what each server is busy with for one of them, and how many records it has in the end.
async fn measure(name: &str, store: &RedisStore, servers: &[Server]) {
    let mut best = vec![f64::MAX];
    let mut keys = Vec::new();
    for _ in 0..ROUNDS {
        for server in servers {
            server.tell("FLUSHALL");
            server.tell("CONFIG RESETSTAT");
        }
        let mut tasks = JoinSet::new();
        for _ in 0..REQUESTS {
            if tasks.len() == AT_ONCE {
                tasks.join_next().await.unwrap().unwrap();
            }
            let store = store.clone();
            tasks.spawn(async move { request(&store, &key(&random())).await });
        }
        tasks.join_all().await;
        let spent: Vec<_> = servers.iter().map(|server| spent(server) / REQUESTS as f64).collect();
        // The best round, since whatever else the machine does can only add.
        if busiest(&spent) < busiest(&best) {
            best = spent;
            keys = servers.iter().map(records).collect();
        }
    }
    let figures = best.iter().map(|spent| format!("{spent:.2}")).collect::<Vec<_>>().join(" ");
    let keys = keys.iter().map(|keys| format!("{:.1}%", keys * 100.0 / REQUESTS as f64)).collect::<Vec<_>>().join(" ");
    println!("{name:<14} {figures:>28} {:>16.2} {keys:>16}", busiest(&best));
}

fn busiest(spent: &[f64]) -> f64 {
    spent.iter().copied().fold(0.0, f64::max)
}

/// One key, over and over.
async fn hot(name: &str, store: &impl Store, server: &Server) {
    let key = key("hot");
    let (mut median, mut busy) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        server.tell("CONFIG RESETSTAT");
        let mut times = Vec::with_capacity(REQUESTS);
        for _ in 0..REQUESTS {
            let began = Instant::now();
            let claimed = store.claim(&key, &Claim::new(DAY, DAY)).await.unwrap();
            times.push(began.elapsed());
            assert!(matches!(claimed, Claimed::Settled(Some(_))));
        }
        times.sort_unstable();
        median = median.min(times[REQUESTS / 2].as_secs_f64() * 1e6);
        busy = busy.min(spent(server) / REQUESTS as f64);
    }
    println!("{name:<22} {median:>10.2} {busy:>22.2}");
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
    ["set", "pttl", "evalsha"].iter().map(|command| of(&stats, command)).sum()
}

fn of(stats: &str, command: &str) -> f64 {
    let name = format!("cmdstat_{command}:");
    let line = stats.lines().find(|line| line.starts_with(&name)).unwrap_or_default();
    line.split("usec=").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or_default()
}
