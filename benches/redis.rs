//! What the Redis store costs beside the bare commands that it is made of, in one run against one server.
//!
//! ```console
//! $ cargo bench --all-features --bench redis
//! ```
//!
//! It starts a `redis-server` of its own on loopback; with `PATH=$(scripts/newer-redis valkey-9.1):$PATH` that is one which
//! settles by plain commands. Latencies on a small machine jump with the core that wakes up; the server's own time does
//! not.
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
    // The other store does not know the claims of the first one, so it settles them by the script.
    let (store, other) = (server.store().await, server.store().await);
    let connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let bench = Bench { compares: server.compares(), server, store, other, connection };
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
    other: RedisStore,
    /// Whether the server settles by plain commands.
    compares: bool,
    connection: MultiplexedConnection,
}

/// The best of several rounds, since whatever else the machine does can only add.
#[derive(Clone, Copy)]
struct Figures {
    median: f64,
    rate: f64,
    server: f64,
}

const NOTHING: Figures = Figures { median: f64::MAX, rate: 0.0, server: f64::MAX };

impl Figures {
    fn improve(&mut self, other: Self) {
        self.median = self.median.min(other.median);
        self.rate = self.rate.max(other.rate);
        self.server = self.server.min(other.server);
    }
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
        let by = if self.compares { "set" } else { "evalsha" };
        let settled = self.settling(at_once, by, &self.store).await;
        show("settle", settled);
        show("settle by the script", self.settling(at_once, "evalsha", &self.other).await);
        let whole = self.measure(at_once, "", |_, store, key| async move { request(&store, &key).await });
        // The server counts what a script calls twice, under its own name and under the script's.
        show("first request, whole", Figures { server: claim.server + settled.server, ..whole.await });
    }

    /// What a store takes for the claims that the first one has made.
    async fn settling(&self, at_once: usize, command: &str, by: &RedisStore) -> Figures {
        let mut best = NOTHING;
        // As many claims as are remembered, and no more.
        for _ in 0..ROUNDS {
            let claimed = self.claimed(CALLS / 4).await;
            let call = |_, _, _| {
                let (key, claim) = claimed.lock().unwrap().pop().unwrap();
                let store = by.clone();
                async move { settle(&store, &key, &claim).await }
            };
            best.improve(self.round(at_once, CALLS / 4, command, &call).await);
        }
        best
    }

    /// Claims that run.
    async fn claimed(&self, count: usize) -> Mutex<Vec<(RecordKey, Claim)>> {
        let mut claims = Vec::new();
        for _ in 0..count {
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
                let plain = self.compares || stats.contains("cmdstat_rename:");
                let plain = if plain { spent(&stats, "set") } else { 0.0 };
                best = best.min((spent(&stats, "evalsha") + plain) / f64::from(calls));
                self.server.tell("FLUSHALL");
            }
            println!("settle, {kib:>4} KiB: {best:>48.2}");
        }
    }

    /// `command` is the one whose time in the server counts.
    async fn measure<F, R>(&self, at_once: usize, command: &str, call: F) -> Figures
    where
        F: Fn(MultiplexedConnection, RedisStore, RecordKey) -> R,
        R: Future<Output = ()> + Send + 'static,
    {
        let mut best = NOTHING;
        for _ in 0..ROUNDS {
            best.improve(self.round(at_once, CALLS, command, &call).await);
        }
        best
    }

    async fn round<F, R>(&self, at_once: usize, calls: usize, command: &str, call: &F) -> Figures
    where
        F: Fn(MultiplexedConnection, RedisStore, RecordKey) -> R,
        R: Future<Output = ()> + Send + 'static,
    {
        self.server.tell("CONFIG RESETSTAT");
        let (mut tasks, mut times) = (JoinSet::new(), Vec::with_capacity(calls));
        let began = Instant::now();
        for _ in 0..calls {
            if tasks.len() == at_once {
                times.push(tasks.join_next().await.unwrap().unwrap());
            }
            let call = call(self.connection.clone(), self.store.clone(), new_key());
            tasks.spawn(async move {
                let began = Instant::now();
                call.await;
                began.elapsed()
            });
        }
        while let Some(time) = tasks.join_next().await {
            times.push(time.unwrap());
        }
        let rate = calls as f64 / began.elapsed().as_secs_f64();
        times.sort_unstable();
        let server = spent(&self.server.tell("INFO commandstats"), command) / calls as f64;
        Figures { median: times[calls / 2].as_secs_f64() * 1e6, rate, server }
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
