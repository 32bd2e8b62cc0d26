//! What the verbs of the Redis store allocate, the driver's task included, which runs on the same thread here.
//!
//! ```console
//! $ cargo bench --all-features --bench redis_allocations
//! ```
//!
//! It starts a `redis-server` of its own on loopback.

#[path = "../tests/redis/server.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod server;

use std::{collections::BTreeMap, future::Future, time::Duration};

use bytes::Bytes;
use tokio::runtime::Runtime;
use tower_idempotency::{
    RedisStore,
    store::{Claim, RecordKey, Release, Settlement, Store},
};

use self::server::Server;

const DAY: Duration = Duration::from_secs(86_400);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let server = Server::start(&[]);
    // The other store does not know the claims of the first one, so it settles them by the script.
    let (store, other) = runtime.block_on(async { (server.store().await, server.store().await) });
    let mut counts = Counts { runtime, found: BTreeMap::new() };
    for number in 0..201 {
        round(&mut counts, &store, &other, number);
    }
    for (verb, mut counts) in counts.found {
        counts.sort_unstable();
        let (count, bytes) = counts[counts.len() / 2];
        println!("{verb:<22} {count:>3} allocations, {bytes:>5} bytes");
    }
}

struct Counts {
    runtime: Runtime,
    found: BTreeMap<&'static str, Vec<(u64, u64)>>,
}

impl Counts {
    fn of<T, E: std::fmt::Debug>(&mut self, verb: &'static str, call: impl Future<Output = Result<T, E>>) {
        let mut call = Some(call);
        let counted = allocation_counter::measure(|| {
            let _ = self.runtime.block_on(call.take().unwrap()).unwrap();
        });
        self.found.entry(verb).or_default().push((counted.count_total, counted.bytes_total));
    }
}

fn round(counts: &mut Counts, store: &RedisStore, other: &RedisStore, number: u32) {
    let key = |name: &str| RecordKey::new("/bench", Some("ann"), &format!("{name}{number:032x}")).unwrap();
    let settlement = |claim: &Claim| Settlement::new(claim.claimant, Some(Bytes::from_static(&[b'x'; 300])), DAY);
    let [settled, by_script, released, renewed] = [(); 4].map(|()| Claim::new(DAY, DAY));
    for (name, claim) in
        [("settled", &settled), ("by script", &by_script), ("released", &released), ("renewed", &renewed)]
    {
        let key = key(name);
        counts.of("claim", async { store.claim(&key, claim).await });
    }
    let (kept, answer) = (key("settled"), settlement(&settled));
    counts.of("settle", async { store.settle(&kept, &answer).await });
    let again = Claim::new(DAY, DAY);
    counts.of("replay", async { store.claim(&kept, &again).await });
    let (key_by_script, answer) = (key("by script"), settlement(&by_script));
    counts.of("settle by the script", async { other.settle(&key_by_script, &answer).await });
    let (key_released, release) = (key("released"), Release::new(released.claimant, DAY));
    counts.of("release", async { store.release(&key_released, &release).await });
    let key_renewed = key("renewed");
    counts.of("renew", async { store.renew(&key_renewed, &renewed).await });
}
