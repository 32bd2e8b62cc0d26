//! Two processes relay while they are killed at random moments and while others stage. Every message that the broker gets
//! is written down.

use std::{
    collections::{HashMap, HashSet},
    env,
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Request},
    routing::post,
};
use tokio::{sync::Mutex, task::JoinSet, time::sleep};
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer, MemoryStore,
    sql::outbox::{Outbox, Relay, StagedMessage},
    store::Claimant,
};

use super::shop::{Shop, message};
use crate::{database::TestDatabase, folder::Folder};

const KEYS: usize = 6;
const EACH: usize = 90;
const WRITERS: usize = 3;
const AT_ONCE: usize = 3;
const LEAST_KILLS: usize = 5;

/// What a process does until it is killed.
pub(crate) async fn relay_process<D: TestDatabase>() {
    let outbox = Outbox::new(D::connect_patiently(&env::var("OUTBOX_ADDRESS").unwrap(), 8).await);
    let log = OpenOptions::new().append(true).open(env::var("OUTBOX_LOG").unwrap()).unwrap();
    let log = Arc::new(log);
    let sender = move |outgoing: StagedMessage| {
        let log = Arc::clone(&log);
        async move {
            sleep(millis(0..4)).await;
            let message = outgoing.message;
            let (key, number) = (message.key.unwrap(), String::from_utf8_lossy(&message.payload).into_owned());
            // A line is written at once, and so is there whole or not at all.
            (&*log).write_all(format!("{key} {number} {}\n", message.id).as_bytes())?;
            sleep(millis(0..8)).await;
            Ok::<_, std::io::Error>(())
        }
    };
    let relay = Relay::new(outbox, sender).concurrency(AT_ONCE).send_timeout(Duration::from_millis(500));
    relay.run(Duration::from_millis(20), std::future::pending()).await;
}

/// Those that are running; killed when this is dropped, after a failed test too.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for process in &mut self.0 {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

pub(crate) async fn killed_relays<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let folder = Folder::new();
    let path = folder.path().join("broker.log");
    fs::write(&path, "").unwrap();
    shop.run("CREATE TABLE orders (name VARCHAR(20) NOT NULL PRIMARY KEY, n INTEGER NOT NULL)").await;
    for key in 0..KEYS {
        shop.run(&format!("INSERT INTO orders VALUES ('k{key}', 0)")).await;
    }
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write::<D>(Shop::on(&shop.place).await, writer));
    }

    let start = || start::<D>(&shop, &path);
    let mut processes = Processes(vec![start(), start()]);
    let (began, mut kills) = (Instant::now(), 0);
    loop {
        sleep(millis(100..700)).await;
        while writers.try_join_next().is_some_and(|writer| writer.is_ok()) {}
        let done = writers.is_empty() && shop.unsent().await == 0;
        if done {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(240), "they do not come to an end");
        let one = kills % processes.0.len();
        assert!(processes.0[one].try_wait().unwrap().is_none(), "it has ended by itself");
        // By signal 9.
        processes.0[one].kill().unwrap();
        processes.0[one].wait().unwrap();
        processes.0[one] = start();
        kills += 1;
    }
    drop(processes);
    assert!(kills >= LEAST_KILLS, "hardly anything happened: {kills}");
    let log = fs::read_to_string(&path).unwrap();
    judge(&log, kills);
    absorb(&log).await;
}

/// Stages as the shop does: the order's row first, which puts those of one order one after the other.
async fn write<D: TestDatabase>(shop: Shop<D>, writer: usize) {
    for n in 0..KEYS * EACH / WRITERS {
        let key = format!("k{}", (n + writer) % KEYS);
        let mut transaction = shop.pool.begin().await.unwrap();
        D::say(&mut transaction, &format!("UPDATE orders SET n = n + 1 WHERE name = '{key}'")).await.unwrap();
        let text = format!("SELECT CAST(n AS {}) FROM orders WHERE name = '{key}'", D::BIG);
        let number = D::tell(&mut transaction, &text).await.unwrap();
        shop.outbox.stage(&mut transaction, &message(&key, number)).await.unwrap();
        transaction.commit().await.unwrap();
        sleep(millis(0..60)).await;
    }
}

fn start<D: TestDatabase>(shop: &Shop<D>, log: &PathBuf) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", &format!("outbox::{}::relay_process", D::MODULE), "--ignored"])
        .env("OUTBOX_ADDRESS", D::url(&shop.place))
        .env("OUTBOX_LOG", log)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Nothing is lost, nothing is out of its order, and what comes twice is what a relay was at when it was killed.
fn judge(log: &str, kills: usize) {
    let mut sent: HashMap<&str, Vec<(usize, &str)>> = HashMap::new();
    for line in log.lines() {
        let [key, number, id] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        sent.entry(key).or_default().push((number.parse().unwrap(), id));
    }
    let mut doubled = 0;
    for (key, sent) in &sent {
        let mut last = (0, "");
        for &(number, id) in sent {
            if (number, id) == last {
                doubled += 1;
            } else {
                assert_eq!(number, last.0 + 1, "{key}: after {}", last.0);
            }
            last = (number, id);
        }
        assert_eq!(last.0, EACH, "{key}");
    }
    println!("{kills} kills, {doubled} messages sent again");
    assert_eq!(sent.len(), KEYS);
    assert!(doubled <= kills * AT_ONCE, "{doubled} were doubled by {kills} kills");
}

/// A consumer that knows messages by their ids has one effect of each, however often they come.
async fn absorb(log: &str) {
    let effects = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(Mutex::new(HashSet::new()));
    let consume = {
        let (effects, seen) = (Arc::clone(&effects), Arc::clone(&seen));
        async move |State(()): State<()>, headers: HeaderMap| {
            effects.fetch_add(1, Relaxed);
            assert!(seen.lock().await.insert(headers["idempotency-key"].clone()), "an effect that came twice");
        }
    };
    let layer = IdempotencyLayer::new(MemoryStore::new());
    let app: Router = Router::new().route("/", post(consume).layer(layer)).with_state(());
    for line in log.lines() {
        let id = line.split(' ').next_back().unwrap();
        let request = Request::post("/").header("idempotency-key", id).body(Body::empty()).unwrap();
        assert!(app.clone().oneshot(request).await.unwrap().status().is_success());
    }
    assert_eq!(effects.load(Relaxed), KEYS * EACH);
}

fn millis(range: std::ops::Range<u64>) -> Duration {
    let [a, b, ..] = Claimant::random().to_bytes();
    Duration::from_millis(range.start + u64::from(u16::from_le_bytes([a, b])) % (range.end - range.start))
}
