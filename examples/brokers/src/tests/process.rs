//! Consumers in processes of their own.

use std::{
    env,
    future::pending,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio, exit},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use sqlx::Sqlite;
use tokio::time::sleep;
use tower::service_fn;
use tower_idempotency::{ConsumerLayer, Event, Observer, Operation, SqliteStore, fingerprint::Fingerprint};

use crate::{
    nats,
    payouts::{self, Order},
    rabbitmq,
};

pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// How long JetStream waits for word of a message.
const PATIENCE: Duration = Duration::from_secs(3);
/// The bank never pays so much.
pub(crate) const TOO_MUCH: u64 = 13;

/// What becomes of a consumer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    /// It pays.
    Pays,
    /// It pays, records that, and ends before it acknowledges.
    DiesBeforeItAcknowledges,
    /// It begins to pay, and stands still.
    Hangs,
    /// It says that it begins, and takes some time.
    PaysSlowly,
    /// The same, and what it pays is a row in the transaction in which its message is recorded.
    PaysInTransaction,
}

/// What all consumers of one scenario have said, one line each.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    pub(crate) fn lines(&self, what: &str) -> Vec<String> {
        let mut lines = self.0.lock().unwrap().clone();
        lines.retain(|line| line.starts_with(what));
        lines.sort();
        lines
    }

    pub(crate) async fn until(&self, line: &str) {
        let began = Instant::now();
        while self.lines(line).is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody said `{line}`: {:?}", self.lines(""));
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// It ends when this is dropped, as by `kill -9`.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn start(role: Role, url: &str, queue: &str, store: &Path, said: &Said) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "tests::process::in_a_process_of_its_own", "--nocapture"])
            .envs([("TEST_ROLE", &*format!("{role:?}")), ("TEST_URL", url), ("TEST_QUEUE", queue)])
            .env("TEST_STORE", store)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let said = said.clone();
        thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // The test harness begins a line for the test's name.
                let line = line.rsplit(" ... ").next().unwrap_or_default();
                said.0.lock().unwrap().push(line.to_owned());
            }
        });
        Self(child)
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(mut self) {
        while self.0.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What the other processes do. Without a role, nothing.
#[tokio::test(flavor = "multi_thread")]
async fn in_a_process_of_its_own() {
    let Ok(role) = env::var("TEST_ROLE") else { return };
    let [url, queue, store] = ["TEST_URL", "TEST_QUEUE", "TEST_STORE"].map(|name| env::var(name).unwrap());
    let store = SqliteStore::open(store).await.unwrap();
    let (hangs, slow) = (role == "Hangs", role == "PaysSlowly");
    let in_transaction = role == "PaysInTransaction";
    let pay = move |number: Option<String>, amount, operation: Option<Operation>| async move {
        let (number, operation) = (number.unwrap(), operation.unwrap());
        let attempt = operation.attempt();
        if hangs || slow {
            println!("began {number}, attempt {attempt}");
        }
        if hangs {
            pending::<()>().await;
        }
        if in_transaction {
            let mut tx = operation.transaction::<Sqlite>()?;
            sqlx::query("INSERT INTO payouts (number) VALUES (?)").bind(&number).execute(&mut *tx).await?;
        }
        if slow || in_transaction {
            sleep(Duration::from_millis(30)).await;
        }
        if amount == TOO_MUCH {
            println!("declined {number}, attempt {attempt}");
            return Err("declined".into());
        }
        println!("paid {number}, attempt {attempt}");
        Ok(())
    };
    let layer = if in_transaction {
        let number = |order: &Order| order.number.clone();
        ConsumerLayer::transactional_with_fingerprint(store, "payouts", number, |_| Fingerprint::OFF)
            .operation(|order, operation| order.operation = Some(operation))
    } else {
        payouts::layer(store)
    };
    let layer = adjust(layer, &role);
    let pay = service_fn(move |order: Order| pay(order.number, order.amount, order.operation));
    if url.starts_with("amqp") {
        rabbitmq::consume(&url, &queue, layer, pay).await.unwrap();
    } else {
        nats::consume(&url, &queue, PATIENCE, layer, pay).await.unwrap();
    }
}

fn adjust(layer: ConsumerLayer<Order>, role: &str) -> ConsumerLayer<Order> {
    let layer = layer.lease(LEASE).retry_after(Duration::from_millis(100));
    match role {
        "DiesBeforeItAcknowledges" => layer.observer(DiesOnceItIsRecorded),
        // What is cut off by a kill counts as an attempt.
        "PaysSlowly" => layer.attempts(100),
        _ => layer,
    }
}

struct DiesOnceItIsRecorded;

impl Observer for DiesOnceItIsRecorded {
    fn on_event(&self, event: &Event<'_>) {
        if let Event::Settled { .. } = event {
            exit(1);
        }
    }
}
