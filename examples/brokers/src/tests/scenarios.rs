//! What may happen between a broker and its consumers.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use tokio::time::sleep;
use tower_idempotency::SqliteStore;

use super::process::{Process, Role, Said, TOO_MUCH};

const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) trait Broker: Sync {
    fn url(&self) -> String;

    /// A place for the consumers' records.
    fn store(&self, queue: &str) -> PathBuf;

    /// Sends these messages to a queue.
    async fn send(&self, queue: &str, bodies: &[String]);

    /// Whether every message of a queue was acknowledged or put aside, now that nobody consumes it.
    async fn is_empty(&self, queue: &str) -> bool;

    /// How many messages were put aside.
    async fn dead(&self, queue: &str) -> usize;
}

struct Scenario<'a, B> {
    broker: &'a B,
    queue: &'static str,
    said: Said,
    consumers: Vec<Process>,
}

impl<'a, B: Broker> Scenario<'a, B> {
    async fn new(broker: &'a B, queue: &'static str, bodies: &[String]) -> Self {
        SqliteStore::open(broker.store(queue)).await.unwrap().migrate().await.unwrap();
        broker.send(queue, bodies).await;
        Self { broker, queue, said: Said::default(), consumers: Vec::new() }
    }

    fn start(&self, role: Role) -> Process {
        Process::start(role, &self.broker.url(), self.queue, &self.broker.store(self.queue), &self.said)
    }

    /// Consumers pay until it is done, by what was said, and so many messages are put aside, and until the broker has
    /// nothing left to deliver.
    async fn until(&mut self, role: Role, done: impl Fn(&[String]) -> bool, dead: usize) {
        let began = Instant::now();
        loop {
            self.consumers.push(self.start(role));
            while !done(&self.lines()) || self.broker.dead(self.queue).await != dead {
                let aside = self.broker.dead(self.queue).await;
                assert!(began.elapsed() < PATIENCE, "{}: {:?}, {aside} put aside", self.queue, self.lines());
                sleep(Duration::from_millis(50)).await;
            }
            // Time for the acknowledgement to arrive. Without it the broker delivers again to the next consumer.
            sleep(Duration::from_secs(1)).await;
            self.consumers.clear();
            if self.broker.is_empty(self.queue).await {
                return;
            }
        }
    }

    async fn comes_to(&mut self, expected: &[String], dead: usize) {
        self.until(Role::Pays, |lines| lines == expected, dead).await;
        assert_eq!(self.lines(), expected);
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = self.said.lines("");
        lines.retain(|line| ["began", "paid", "declined"].iter().any(|what| line.starts_with(what)));
        lines
    }
}

fn order(number: &str, amount: u64) -> String {
    format!(r#"{{"number":"{number}","amount":{amount}}}"#)
}

pub(crate) async fn all(broker: &impl Broker) {
    tokio::join!(
        a_lost_acknowledgement(broker),
        a_consumer_that_is_killed(broker),
        consumers_that_are_killed_again_and_again(broker),
        effects_in_the_transaction_of_the_record(broker),
        two_consumers(broker),
        a_poison_message(broker),
        messages_that_no_delivery_helps(broker),
    );
}

/// Paid and recorded; the broker has no acknowledgement, and delivers again. The effect is there once.
async fn a_lost_acknowledgement(broker: &impl Broker) {
    let mut scenario = Scenario::new(broker, "lost-acknowledgement", &[order("order-1", 100)]).await;
    scenario.start(Role::DiesBeforeItAcknowledges).ended().await;
    let paid = ["paid order-1, attempt 1".to_owned()];
    assert!(!scenario.broker.is_empty(scenario.queue).await);
    scenario.comes_to(&paid, 0).await;
}

/// Begun, and nobody knows how far it came. In lease mode the next delivery runs, and sees `attempt > 1`: what the first one did,
/// if it did anything, is there twice unless the second one asks first.
async fn a_consumer_that_is_killed(broker: &impl Broker) {
    let mut scenario = Scenario::new(broker, "killed", &[order("order-1", 100)]).await;
    let hangs = scenario.start(Role::Hangs);
    scenario.said.until("began").await;
    drop(hangs);
    let twice = ["began order-1, attempt 1".to_owned(), "paid order-1, attempt 2".to_owned()];
    scenario.comes_to(&twice, 0).await;
}

/// No order is lost, and none is begun anew but those that a kill has cut off: as many as a consumer has in hand.
async fn consumers_that_are_killed_again_and_again(broker: &impl Broker) {
    const KILLS: usize = 5;
    let orders: Vec<_> = (10..60).map(|number| format!("order-{number},")).collect();
    let bodies: Vec<_> = orders.iter().chain(&orders).map(|number| order(number.trim_end_matches(','), 100)).collect();
    let mut scenario = Scenario::new(broker, "killed-again", &bodies).await;
    for kill in 1..=KILLS {
        let consumer = scenario.start(Role::PaysSlowly);
        let before = scenario.said.lines("began").len();
        let began = Instant::now();
        // The longer it goes on, the fewer are left that are not yet begun.
        while scenario.said.lines("began").len() == before && began.elapsed() < Duration::from_secs(2) {
            sleep(Duration::from_millis(7) * u32::try_from(kill).unwrap()).await;
        }
        drop(consumer);
    }
    let of = |lines: &[String], what: &str, order: &String| {
        lines.iter().filter(|line| line.starts_with(what) && line.contains(order)).count()
    };
    let all_paid = |lines: &[String]| orders.iter().all(|order| of(lines, "paid", order) > 0);
    scenario.until(Role::PaysSlowly, all_paid, 0).await;

    let lines = scenario.lines();
    let mut again = 0;
    for order in &orders {
        let (begun, paid) = (of(&lines, "began", order), of(&lines, "paid", order));
        assert!((1..=begun).contains(&paid), "{order} {lines:?}");
        again += begun - 1;
    }
    assert!(again <= KILLS * 10, "{again} begun again: {lines:?}");
}

/// What is paid is a row in the transaction in which the message is recorded: each order has one, whenever a consumer is
/// killed and however often the broker delivers.
async fn effects_in_the_transaction_of_the_record(broker: &impl Broker) {
    let orders: Vec<_> = (10..50).map(|number| format!("order-{number}")).collect();
    let bodies: Vec<_> = orders.iter().chain(&orders).map(|number| order(number, 100)).collect();
    let mut scenario = Scenario::new(broker, "transactions", &bodies).await;
    let store = SqliteStore::open(broker.store("transactions")).await.unwrap();
    sqlx::raw_sql("CREATE TABLE payouts (number TEXT NOT NULL)").execute(store.pool()).await.unwrap();
    for kill in 0..6_u32 {
        let consumer = scenario.start(Role::PaysInTransaction);
        let before = scenario.said.lines("paid").len();
        let began = Instant::now();
        while scenario.said.lines("paid").len() == before && began.elapsed() < Duration::from_secs(2) {
            sleep(Duration::from_millis(7 + u64::from(kill) * 11)).await;
        }
        drop(consumer);
    }
    let all_paid = |lines: &[String]| {
        orders.iter().all(|order| lines.iter().any(|line| line.starts_with(&format!("paid {order},"))))
    };
    scenario.until(Role::PaysInTransaction, all_paid, 0).await;

    let paid: Vec<String> =
        sqlx::query_scalar("SELECT number FROM payouts ORDER BY number").fetch_all(store.pool()).await.unwrap();
    assert_eq!(paid, orders);
}

/// Each order is sent twice, and the consumer that gets it first pays.
async fn two_consumers(broker: &impl Broker) {
    let bodies: Vec<_> = (20..60).map(|number| order(&format!("order-{}", number / 2), 100)).collect();
    let mut scenario = Scenario::new(broker, "two-consumers", &bodies).await;
    scenario.consumers.push(scenario.start(Role::Pays));
    let paid: Vec<_> = (10..30).map(|number| format!("paid order-{number}, attempt 1")).collect();
    scenario.comes_to(&paid, 0).await;
}

/// It fails whenever it is tried, and is put aside after the third time.
async fn a_poison_message(broker: &impl Broker) {
    let mut scenario = Scenario::new(broker, "poison", &[order("order-1", TOO_MUCH), order("order-2", 100)]).await;
    let declined = |attempt| format!("declined order-1, attempt {attempt}");
    let expected = [declined(1), declined(2), declined(3), "paid order-2, attempt 1".into()];
    scenario.comes_to(&expected, 1).await;
}

/// Without a key, unreadable, or another order under a number that is taken: put aside at once.
async fn messages_that_no_delivery_helps(broker: &impl Broker) {
    let bodies = [r#"{"amount":100}"#.to_owned(), "not an order".into(), order("", 100), order("order-1", 100)];
    let mut scenario = Scenario::new(broker, "no-key", &bodies).await;
    let paid = ["paid order-1, attempt 1".to_owned()];
    scenario.comes_to(&paid, 3).await;
    broker.send("no-key", &[order("order-1", 200)]).await;
    scenario.comes_to(&paid, 4).await;
}
