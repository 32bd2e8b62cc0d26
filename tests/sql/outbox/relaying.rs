//! At least once, and in order.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::JoinSet,
    time::sleep,
};
use tower_idempotency::sql::outbox::{Relay, StagedMessage};

use super::shop::{Broker, Shop, message, numbers};
use crate::database::TestDatabase;

pub(crate) async fn in_order_for_each_key<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage((0..60).map(|n| message(&format!("k{}", n % 5), n / 5))).await;
    let broker = Broker::default();
    let sender = {
        let broker = broker.clone();
        move |outgoing: StagedMessage| {
            let broker = broker.clone();
            async move {
                sleep(Duration::from_millis(u64::from(outgoing.message.id.as_bytes()[0] % 8))).await;
                broker.take(outgoing);
                Ok::<_, std::io::Error>(())
            }
        }
    };
    let relayed = Relay::new(shop.outbox.clone(), sender).concurrency(3).run_once().await.unwrap();
    assert_eq!((relayed.sent, relayed.failed, relayed.overtaken), (60, 0, 0));
    for key in 0..5 {
        assert_eq!(broker.of(&format!("k{key}")), numbers(0..12));
    }
}

/// Longer than what is sent of a key before the others are looked at.
pub(crate) async fn a_long_row_of_one_key<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let mut transaction = shop.pool.begin().await.unwrap();
    for n in 0..330_usize {
        let key = if n % 3 == 0 { format!("k{n}") } else { "a".to_owned() };
        shop.outbox.stage(&mut transaction, &message(&key, (n - n / 3).saturating_sub(1))).await.unwrap();
    }
    transaction.commit().await.unwrap();
    let broker = Broker::default();
    let relayed = Relay::new(shop.outbox.clone(), broker.sender()).run_once().await.unwrap();
    assert_eq!((relayed.sent, broker.of("a")), (330, numbers(0..220)));
    assert!(broker.all().iter().all(|outgoing| outgoing.attempt == 1));
}

pub(crate) async fn a_key_that_fails_holds_up_itself<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage((0..3).map(|n| message("bad", n))).await;
    shop.stage((0..20).map(|n| message("good", n))).await;
    let broker = Broker::default();
    let sender = {
        let broker = broker.clone();
        move |outgoing: StagedMessage| {
            let fails = outgoing.message.key.as_deref() == Some("bad") && outgoing.attempt < 3;
            if !fails {
                broker.take(outgoing);
            }
            async move { if fails { Err("the broker says no") } else { Ok(()) } }
        }
    };
    let relay = Relay::new(shop.outbox.clone(), sender).concurrency(2);
    let relayed = relay.clone().backoff(Duration::from_secs(60), Duration::from_secs(60)).run_once().await.unwrap();
    assert_eq!((relayed.sent, relayed.failed), (20, 1));
    assert_eq!((broker.of("good"), broker.of("bad")), (numbers(0..20), numbers(0..0)));
    let again = relay.run_once().await.unwrap();
    assert_eq!((again.sent, again.failed), (0, 0), "it waits");
    assert_eq!(shop.outbox.stats().await.unwrap().failing, 1);

    shop.run("UPDATE idempotency_outbox SET due_ms = 0").await;
    shop.drain(&relay.backoff(Duration::from_millis(20), Duration::from_millis(40))).await;
    assert_eq!(broker.of("bad"), numbers(0..3));
    assert!(broker.all()[20..].iter().all(|outgoing| outgoing.attempt == 3));
}

pub(crate) async fn a_sender_that_hangs_or_panics<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let order = ["hangs", "panics", "a", "b", "c"];
    shop.stage(order.map(|key| message(key, 0))).await;
    let broker = Broker::default();
    let sender = {
        let broker = broker.clone();
        move |outgoing: StagedMessage| {
            let broker = broker.clone();
            async move {
                match (outgoing.message.key.as_deref(), outgoing.attempt) {
                    (Some("hangs"), 1) => std::future::pending().await,
                    (Some("panics"), 1) => panic!("told to panic"),
                    _ => broker.take(outgoing),
                }
                Ok::<_, std::io::Error>(())
            }
        }
    };
    let relay = Relay::new(shop.outbox.clone(), sender)
        .concurrency(2)
        .send_timeout(Duration::from_millis(300))
        .backoff(Duration::from_millis(20), Duration::from_millis(20));
    let relayed = relay.run_once().await.unwrap();
    assert!(relayed.sent >= 3 && relayed.failed == 2, "{relayed:?}");
    shop.drain(&relay).await;
    assert_eq!(broker.all().len(), 5);
}

pub(crate) async fn several_relays_send_once<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage((0..200).map(|n| message(&format!("k{}", n % 10), n / 10))).await;
    let broker = Broker::default();
    let mut relays = JoinSet::new();
    for n in 0..4 {
        let process = Shop::<D>::on(&shop.place).await;
        let relay = Relay::new(process.outbox.clone(), broker.sender()).concurrency(1 + n);
        relays.spawn(async move {
            let mut sent = 0;
            while process.unsent().await > 0 {
                sent += relay.run_once().await.unwrap().sent;
            }
            sent
        });
    }
    assert_eq!(relays.join_all().await.into_iter().sum::<u64>(), 200);
    for key in 0..10 {
        assert_eq!(broker.of(&format!("k{key}")), numbers(0..20));
    }
}

/// A relay that was away for too long does not say of another one's message that it was sent.
pub(crate) async fn overtaken_ones_are_not_marked<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage([message("a", 0)]).await;
    let (sending, gate, times) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)), AtomicU32::new(0));
    let sender = {
        let (sending, gate) = (Arc::clone(&sending), Arc::clone(&gate));
        move |_: StagedMessage| {
            times.fetch_add(1, Relaxed);
            let (sending, gate) = (Arc::clone(&sending), Arc::clone(&gate));
            async move {
                sending.add_permits(1);
                gate.acquire().await.map(SemaphorePermit::forget)
            }
        }
    };
    let relay = Relay::new(shop.outbox.clone(), sender);
    let late = tokio::spawn({
        let relay = relay.clone();
        async move { relay.run_once().await.unwrap() }
    });
    sending.acquire().await.unwrap().forget();
    assert_eq!(relay.run_once().await.unwrap().sent, 0, "it is leased");
    shop.run("UPDATE idempotency_outbox SET lease_ends_ms = 1").await;
    let other = tokio::spawn(async move { relay.run_once().await.unwrap() });
    sending.acquire().await.unwrap().forget();
    gate.add_permits(1);
    // Which of the two goes through the gate first is open. The first one's lease is gone.
    gate.add_permits(1);
    let (late, other) = (late.await.unwrap(), other.await.unwrap());
    assert_eq!((late.sent, late.overtaken), (0, 1));
    assert_eq!((other.sent, other.overtaken), (1, 0));
    assert_eq!(shop.unsent().await, 0);
}
