//! Which message comes first, and what a destination that does not answer holds up.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};
use tower_idempotency::sql::outbox::{Message, Relay, Sender, StagedMessage};

use super::shop::{Broker, Shop, text};
use crate::database::TestDatabase;

/// How soon others are sent beside a destination that hangs.
const SOON: Duration = Duration::from_secs(1);

/// As many tests run beside one another, a second is not always a second. What waited for the destination would take minutes.
const LENIENCY: Duration = Duration::from_secs(2);

/// A sender that never comes back for topics that begin with `hangs`, and how often it was asked for one.
fn hanging(broker: &Broker) -> (Arc<AtomicUsize>, impl Sender + use<>) {
    let (broker, hung) = (broker.clone(), Arc::new(AtomicUsize::new(0)));
    let sender = {
        let hung = Arc::clone(&hung);
        move |outgoing: StagedMessage| {
            let (broker, hung) = (broker.clone(), Arc::clone(&hung));
            async move {
                if outgoing.message.topic.starts_with("hangs") {
                    hung.fetch_add(1, Relaxed);
                    std::future::pending::<()>().await;
                }
                broker.take(outgoing);
                Ok::<_, std::io::Error>(())
            }
        }
    };
    (hung, sender)
}

fn many(topic: &str, count: usize) -> impl Iterator<Item = Message> {
    (0..count).map(move |n| Message::new(topic, n.to_string()).key(format!("{topic} {n}")))
}

/// In one transaction: a thousand commits take longer than what is looked at.
async fn stage_at_once<D: TestDatabase>(shop: &Shop<D>, messages: impl IntoIterator<Item = Message>) {
    let mut transaction = shop.pool.begin().await.unwrap();
    for message in messages {
        shop.outbox.stage(&mut transaction, &message).await.unwrap();
    }
    transaction.commit().await.unwrap();
}

async fn until(what: impl Fn() -> bool, within: Duration) -> Duration {
    let began = Instant::now();
    let reached = async {
        while !what() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(within, reached).await.expect("the others do not wait for what hangs");
    began.elapsed()
}

/// No time-out is reached here: what the others wait for is a place, and not that a message has failed.
pub(crate) async fn a_destination_that_hangs_holds_up_no_other<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    stage_at_once(&shop, many("hangs", 240).chain(many("orders", 100))).await;
    let broker = Broker::default();
    let (hung, sender) = hanging(&broker);
    let relay = Relay::new(shop.outbox.clone(), sender).send_timeout(Duration::from_secs(600));
    let (tell, told) = oneshot::channel::<()>();
    let running = tokio::spawn(async move { relay.run(Duration::from_secs(3600), async { drop(told.await) }).await });
    let took = until(|| broker.all().len() == 100, SOON + LENIENCY).await;
    println!("100 messages beside 240 to a destination that hangs: {took:?}");
    assert_eq!(hung.load(Relaxed), 4, "half of the relay");

    // What is staged while the destination hangs is looked for all the same.
    stage_at_once(&shop, many("orders, later", 10)).await;
    shop.outbox.wake();
    until(|| broker.all().len() == 110, SOON + LENIENCY).await;
    drop(tell);
    running.abort();
}

pub(crate) async fn destinations_that_fail_are_tried_one_at_a_time<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    stage_at_once(&shop, many("hangs 1", 40).chain(many("hangs 2", 40)).chain(many("orders", 20))).await;
    let broker = Broker::default();
    let (hung, sender) = hanging(&broker);
    let relay = Relay::new(shop.outbox.clone(), sender).concurrency(4).send_timeout(Duration::from_millis(700));
    let running = tokio::spawn(async move { relay.run(Duration::from_millis(50), std::future::pending()).await });
    until(|| broker.all().len() == 20, Duration::from_secs(30)).await;
    let tried = hung.load(Relaxed);
    assert!(tried < 20, "of 80 that hang {tried} were tried before the 20 others were sent");
    running.abort();
}

pub(crate) async fn what_was_never_tried_goes_before_what_failed<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    stage_at_once(&shop, many("bad", 2).chain(many("good", 20))).await;
    let broker = Broker::default();
    let sender = {
        let broker = broker.clone();
        move |outgoing: StagedMessage| {
            let fails = outgoing.message.topic == "bad" && outgoing.attempt == 1;
            broker.take(outgoing);
            async move { if fails { Err("the broker says no") } else { Ok(()) } }
        }
    };
    let relay = Relay::new(shop.outbox.clone(), sender).concurrency(1).backoff(Duration::ZERO, Duration::ZERO);
    let relayed = relay.run_once().await.unwrap();
    assert_eq!((relayed.sent, relayed.failed), (22, 2));
    let topics: Vec<_> = broker.all().into_iter().map(|outgoing| outgoing.message.topic).collect();
    assert_eq!([&topics[..2], &topics[22..]], [["bad", "bad"], ["bad", "bad"]]);
    assert!(topics[2..22].iter().all(|topic| topic == "good"));
}

pub(crate) async fn what_is_due_for_the_longest_comes_first<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    stage_at_once(&shop, many("orders", 4)).await;
    shop.run("UPDATE idempotency_outbox SET attempts = 1, due_ms = 50 - 10 * seq").await;
    let broker = Broker::default();
    Relay::new(shop.outbox.clone(), broker.sender()).concurrency(1).run_once().await.unwrap();
    assert_eq!(broker.all().iter().map(text).collect::<Vec<_>>(), ["3", "2", "1", "0"]);
}

/// The messages behind one of a key are sent in its place as long as they are of its topic.
pub(crate) async fn a_key_of_several_topics_keeps_to_the_bound_of_each<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let row = |key: &str| [Message::new("orders", "0").key(key), Message::new("hangs", "1").key(key)];
    stage_at_once(&shop, (0..6).flat_map(|n| row(&n.to_string())).chain(many("mails", 20))).await;
    let broker = Broker::default();
    let (hung, sender) = hanging(&broker);
    let relay = Relay::new(shop.outbox.clone(), sender).concurrency(4).concurrency_per_topic(1);
    let running = tokio::spawn(async move { relay.run(Duration::from_secs(3600), std::future::pending()).await });
    until(|| broker.all().len() == 26, Duration::from_secs(9)).await;
    assert_eq!(hung.load(Relaxed), 1);
    running.abort();
}
