//! A record that is settled while others look at it is never taken for one that has lapsed.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::join_all;
use redis::{
    Cmd, Pipeline, RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use tokio::time::{Instant, sleep};
use tower_idempotency::{
    RedisStore,
    store::{Claim, Claimed, Filter, Origin, RecordKey, Settlement, Store, StoreAdmin},
};

use crate::{granted, key, server::Server};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// As a policy of at most once claims: the record of a running request lives far longer than a kept answer.
fn once() -> Claim {
    let mut claim = Claim::new(Duration::from_secs(30), DAY * 30);
    claim.at_most_once = true;
    claim
}

fn paid(claim: &Claim) -> Settlement {
    Settlement::new(claim.claimant, Some("paid".into()), DAY)
}

type Meanwhile = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// Once, after so many commands of any kind, something else happens before the next one is sent.
#[derive(Clone)]
pub(crate) struct Slow {
    connection: MultiplexedConnection,
    after: Arc<AtomicUsize>,
    meanwhile: Meanwhile,
}

impl Slow {
    pub(crate) async fn to(server: &Server) -> Self {
        let client = redis::Client::open(server.url()).unwrap();
        let connection = client.get_multiplexed_async_connection().await.unwrap();
        Self { connection, after: Arc::default(), meanwhile: Meanwhile::default() }
    }

    pub(crate) fn after(&self, commands: usize, meanwhile: impl Future<Output = ()> + Send + 'static) {
        *self.meanwhile.lock().unwrap() = Some(Box::pin(meanwhile));
        self.after.store(commands, Relaxed);
    }

    async fn send(&mut self, command: &Cmd) -> redis::RedisResult<Value> {
        let answer = self.connection.req_packed_command(command).await;
        if self.after.fetch_sub(1, Relaxed) == 1 {
            let meanwhile = self.meanwhile.lock().unwrap().take();
            if let Some(meanwhile) = meanwhile {
                meanwhile.await;
            }
        }
        answer
    }
}

impl ConnectionLike for Slow {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(self.send(command))
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        skip: usize,
        keep: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        Box::pin(async move {
            // A transaction is one step.
            if pipeline.get_packed_pipeline().windows(5).any(|part| part == b"MULTI") {
                return self.connection.req_packed_commands(pipeline, skip, keep).await;
            }
            let mut answers = Vec::new();
            for command in pipeline.cmd_iter() {
                answers.push(self.send(command).await?);
            }
            Ok(answers.into_iter().skip(skip).take(keep).collect())
        })
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// Settles a claim while another process is at so many commands of looking at it.
async fn settled_meanwhile(server: &Server, name: &str, after: usize) -> RedisStore {
    let runner = server.store().await;
    let slow = Slow::to(server).await;
    let other = RedisStore::builder().with_connection(slow.clone()).await.unwrap();
    let (name, first) = (key(name), once());
    granted(&runner, &name, &first).await;
    slow.after(after, async move {
        runner.settle(&name, &paid(&first)).await.unwrap();
    });
    other
}

#[tokio::test]
async fn a_duplicate_is_told_that_it_runs_or_what_it_came_to() {
    let server = Server::start(&[]);
    for after in 1..4 {
        let name = after.to_string();
        let other = settled_meanwhile(&server, &name, after).await;
        let claimed = other.claim(&key(&name), &once()).await.unwrap();
        let is_true = match &claimed {
            Claimed::Running { left, .. } => *left <= Duration::from_secs(30),
            claimed => *claimed == Claimed::Settled(Some("paid".into()), Origin::NONE),
        };
        assert!(is_true, "after {after} commands: {claimed:?}");
    }
}

#[tokio::test]
async fn an_operator_never_sees_it_abandoned() {
    let server = Server::start(&[]);
    for after in 1..6 {
        let other = settled_meanwhile(&server, &format!("inspected {after}"), after).await;
        let record = other.inspect(&key(&format!("inspected {after}"))).await.unwrap().unwrap();
        assert!(!record.is_abandoned(), "after {after} commands: {record:?}");
        let other = settled_meanwhile(&server, &format!("listed {after}"), after).await;
        let abandoned = other.list(Filter::Abandoned, None, 100).await.unwrap().entries;
        assert!(abandoned.is_empty(), "after {after} commands: {abandoned:?}");
        let other = settled_meanwhile(&server, &format!("counted {after}"), after).await;
        let stats = other.stats().await.unwrap();
        assert_eq!(stats.abandoned, 0, "after {after} commands: {stats:?}");
    }
}

/// A server reads a shared connection in parts of 16 KiB, between which it serves others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_duplicate_under_load_hears_of_an_unknown_outcome() {
    let server = Server::start(&[]);
    let (runner, other) = (server.store().await, server.store().await);
    let [running_yet, settled, unknown] = [const { AtomicUsize::new(0) }; 3];
    let ended = AtomicBool::new(false);
    let current = Mutex::new(RecordKey::new("/pay", None, "none").unwrap());
    let asking = async {
        while !ended.load(Relaxed) {
            let key = current.lock().unwrap().clone();
            let claims = (0..400).map(|_| async { other.claim(&key, &once()).await.unwrap() });
            for claimed in join_all(claims).await {
                let count = match claimed {
                    Claimed::Running { .. } => &running_yet,
                    Claimed::Settled(..) => &settled,
                    Claimed::OutcomeUnknown => &unknown,
                    _ => continue,
                };
                count.fetch_add(1, Relaxed);
            }
        }
    };
    let running = async {
        let began = Instant::now();
        for n in 0.. {
            if began.elapsed() > Duration::from_secs(15) {
                break;
            }
            let (key, first) = (RecordKey::new("/pay", None, &format!("{n} {:200}.", "")).unwrap(), once());
            // Those who ask may be the first to claim it.
            *current.lock().unwrap() = key.clone();
            if !matches!(runner.claim(&key, &first).await.unwrap(), Claimed::Granted(_)) {
                continue;
            }
            sleep(Duration::from_millis(8)).await;
            runner.settle(&key, &paid(&first)).await.unwrap();
        }
        ended.store(true, Relaxed);
    };
    tokio::join!(asking, running);
    let [running_yet, settled, unknown] = [running_yet, settled, unknown].map(AtomicUsize::into_inner);
    println!("{running_yet} found it running, {settled} settled");
    // Or nobody would have come at the moment in question.
    assert!(running_yet > 1000 && settled > 1000, "{running_yet} found it running, {settled} settled");
    assert_eq!(unknown, 0, "beside {running_yet} and {settled}");
}
