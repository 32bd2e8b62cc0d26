//! What the Redis store costs beside the bare commands that it is made of, in one run against one server.
//!
//! ```console
//! $ cargo bench --all-features --bench redis
//! ```
//!
//! It starts a `redis-server` of its own on loopback. Latencies on a small machine jump with the core that wakes up; the
//! server's own time does not.
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

#[path = "../tests/redis/server.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod server;

use std::{
    future::Future,
    sync::Mutex,
    time::{Duration, Instant},
};

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use tokio::task::JoinSet;
use tower_idempotency::{
    RedisStore,
    store::{Claim, Claimed, Finished, RecordKey, Settlement, Store},
};

use self::server::Server;

const DAY: Duration = Duration::from_secs(86_400);
const ROUNDS: usize = 5;
const CALLS: usize = 8_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let bench = Bench { server, store, connection };
    println!("{:<22} {:>4} {:>10} {:>8} {:>12} {:>10}", "", "at", "p50 us", "/ PING", "calls/s", "server us");
    for at_once in [1, 16, 64] {
        bench.all(at_once).await;
    }
    bench.answers().await;
    bench.memory().await;
}

struct Bench {
    server: Server,
    store: RedisStore,
    connection: MultiplexedConnection,
}

/// The best of several rounds, since whatever else the machine does can only add.
#[derive(Clone, Copy)]
struct Figures {
    median: f64,
    rate: f64,
    server: f64,
}

impl Bench {
    async fn all(&self, at_once: usize) {
        let ping = self.measure(at_once, "ping", |mut c, _, _| async move {
            let () = redis::cmd("PING").query_async(&mut c).await.unwrap();
        });
        let ping = ping.await;
        let show = |name: &str, figures: Figures| {
            let Figures { median, rate, server } = figures;
            println!(
                "{name:<22} {at_once:>4} {median:>10.1} {:>8.2} {rate:>12.0} {server:>10.2}",
                median / ping.median
            );
        };
        show("PING", ping);

        let get = self.measure(at_once, "get", |mut c, _, _| async move {
            let _: Vec<u8> = redis::cmd("GET").arg("bench").query_async(&mut c).await.unwrap();
        });
        let () =
            redis::cmd("SET").arg("bench").arg(&[b'x'; 400]).query_async(&mut self.connection.clone()).await.unwrap();
        show("GET, 400 bytes", get.await);

        let set = self.measure(at_once, "set", |mut c, _, key| async move {
            let mut command = redis::cmd("SET");
            command.arg(key.as_bytes()).arg(&[b'x'; 100]).arg("NX").arg("GET").arg("PX").arg(86_400_000);
            let _: Option<Vec<u8>> = command.query_async(&mut c).await.unwrap();
        });
        show("SET NX GET PX, new", set.await);
        let set = self.measure(at_once, "set", |mut c, _, _| async move {
            let mut command = redis::cmd("SET");
            command.arg("bench").arg(&[b'x'; 100]).arg("NX").arg("GET").arg("PX").arg(86_400_000);
            let _: Option<Vec<u8>> = command.query_async(&mut c).await.unwrap();
        });
        show("SET NX GET PX, there", set.await);

        let claim = self.measure(at_once, "set", |_, store, key| async move {
            assert!(matches!(store.claim(&key, &Claim::new(DAY, DAY)).await.unwrap(), Claimed::Granted(_)));
        });
        let claim = claim.await;
        show("claim", claim);

        let kept = RecordKey::new("/bench", Some("ann"), &format!("kept{at_once}")).unwrap();
        request(&self.store, &kept).await;
        let replay = self.measure(at_once, "set", |_, store, _| {
            let kept = kept.clone();
            async move {
                assert!(matches!(
                    store.claim(&kept, &Claim::new(DAY, DAY)).await.unwrap(),
                    Claimed::Settled(Some(_), _)
                ));
            }
        });
        show("replay", replay.await);

        // Settling needs claims, which are made before the clock starts.
        let claimed = self.claimed().await;
        let settle = self.measure(at_once, "evalsha", |_, store, _| {
            let (key, claim) = claimed.lock().unwrap().pop().unwrap();
            async move { settle(&store, &key, &claim).await }
        });
        let settle = settle.await;
        show("settle", settle);
        let whole = self.measure(at_once, "", |_, store, key| async move { request(&store, &key).await });
        // The server counts what a script calls twice, under its own name and under the script's.
        show("first request, whole", Figures { server: claim.server + settle.server, ..whole.await });
    }

    /// Enough claims for all rounds.
    async fn claimed(&self) -> Mutex<Vec<(RecordKey, Claim)>> {
        let mut claims = Vec::new();
        for _ in 0..ROUNDS * CALLS {
            let (key, claim) = (new_key(), Claim::new(DAY, DAY));
            assert!(matches!(self.store.claim(&key, &claim).await.unwrap(), Claimed::Granted(_)));
            claims.push((key, claim));
        }
        Mutex::new(claims)
    }

    /// What settling costs the server, by the size of the answer. A draft is a `SET`, the scripts' own are theirs.
    async fn answers(&self) {
        for kib in [0, 1, 2, 4, 16, 64, 512, 1024] {
            let payload = Bytes::from(vec![b'x'; kib * 1024]);
            let (mut best, calls) = (f64::MAX, 300);
            for _ in 0..ROUNDS {
                let mut claims = Vec::new();
                for _ in 0..calls {
                    let key = new_key();
                    let claim = Claim::new(DAY, DAY);
                    let _ = self.store.claim(&key, &claim).await.unwrap();
                    claims.push((key, claim));
                }
                self.server.tell("CONFIG RESETSTAT");
                for (key, claim) in &claims {
                    let settlement = Settlement::new(claim.claimant, Some(payload.clone()), DAY);
                    let _ = self.store.settle(key, &settlement).await.unwrap();
                }
                let stats = self.server.tell("INFO commandstats");
                let drafts = if stats.contains("cmdstat_rename:") { spent(&stats, "set") } else { 0.0 };
                best = best.min((spent(&stats, "evalsha") + drafts) / f64::from(calls));
                self.server.tell("FLUSHALL");
            }
            println!("settle, {kib:>4} KiB: {best:>48.2}");
        }
    }

    /// `commands` are those whose time in the server counts.
    async fn measure<F, R>(&self, at_once: usize, commands: &str, call: F) -> Figures
    where
        F: Fn(MultiplexedConnection, RedisStore, RecordKey) -> R,
        R: Future<Output = ()> + Send + 'static,
    {
        let mut best = Figures { median: f64::MAX, rate: 0.0, server: f64::MAX };
        for _ in 0..ROUNDS {
            self.server.tell("CONFIG RESETSTAT");
            let (mut tasks, mut times) = (JoinSet::new(), Vec::with_capacity(CALLS));
            let began = Instant::now();
            for _ in 0..CALLS {
                if tasks.len() == at_once {
                    times.push(tasks.join_next().await.unwrap().unwrap());
                }
                let key = new_key();
                let call = call(self.connection.clone(), self.store.clone(), key);
                tasks.spawn(async move {
                    let began = Instant::now();
                    call.await;
                    began.elapsed()
                });
            }
            while let Some(time) = tasks.join_next().await {
                times.push(time.unwrap());
            }
            let rate = CALLS as f64 / began.elapsed().as_secs_f64();
            times.sort_unstable();
            let stats = self.server.tell("INFO commandstats");
            let server = commands.split(',').map(|command| spent(&stats, command)).sum::<f64>() / CALLS as f64;
            let median = times[CALLS / 2].as_secs_f64() * 1e6;
            best.median = best.median.min(median);
            best.rate = best.rate.max(rate);
            best.server = best.server.min(server);
        }
        best
    }

    async fn memory(&self) {
        let used = || {
            let info = self.server.tell("INFO memory");
            let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
            line.trim().parse::<f64>().unwrap()
        };
        for size in [0, 300] {
            self.server.tell("FLUSHALL");
            let before = used();
            for _ in 0..50_000 {
                let key = new_key();
                let claim = Claim::new(DAY, DAY);
                let _ = self.store.claim(&key, &claim).await.unwrap();
                let payload = Some(vec![b'x'; size].into()).filter(|_| size > 0);
                let _ = self.store.settle(&key, &Settlement::new(claim.claimant, payload, DAY)).await.unwrap();
            }
            let each = (used() - before) / 50_000.0;
            println!("a record with an answer of {size} bytes: {each:.0} bytes of `used_memory`");
        }
    }
}

async fn request(store: &RedisStore, key: &RecordKey) {
    let claim = Claim::new(DAY, DAY);
    assert!(matches!(store.claim(key, &claim).await.unwrap(), Claimed::Granted(_)));
    settle(store, key, &claim).await;
}

async fn settle(store: &RedisStore, key: &RecordKey, claim: &Claim) {
    let settlement = Settlement::new(claim.claimant, Some(vec![b'x'; 300].into()), DAY);
    assert!(matches!(store.settle(key, &settlement).await.unwrap(), Finished::Done));
}

fn new_key() -> RecordKey {
    RecordKey::new("/bench", Some("ann"), &format!("{:032x}", random())).unwrap()
}

fn random() -> u128 {
    u128::from_be_bytes(Claim::new(DAY, DAY).claimant.to_bytes())
}

/// The microseconds that the server says it spent on a command.
fn spent(stats: &str, command: &str) -> f64 {
    let name = format!("cmdstat_{command}:");
    let line = stats.lines().find(|line| line.starts_with(&name)).unwrap_or_default();
    line.split("usec=").nth(1).and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or_default()
}
