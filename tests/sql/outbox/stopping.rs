//! How a relay ends, and how it is woken.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Semaphore, oneshot},
    time::{sleep, timeout},
};
use tower_idempotency::sql::outbox::{Relay, Sender, StagedMessage};

use super::shop::{Broker, Shop, message, numbers};
use crate::database::TestDatabase;

/// A sender that waits until it is let through, and signals that it waits.
fn gated(broker: &Broker) -> (Arc<Semaphore>, Arc<Semaphore>, impl Sender + use<>) {
    let (broker, sending, gate) = (broker.clone(), Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let sender = {
        let (sending, gate) = (Arc::clone(&sending), Arc::clone(&gate));
        move |outgoing: StagedMessage| {
            let (broker, sending, gate) = (broker.clone(), Arc::clone(&sending), Arc::clone(&gate));
            async move {
                sending.add_permits(1);
                gate.acquire().await?.forget();
                broker.take(outgoing);
                Ok::<_, tokio::sync::AcquireError>(())
            }
        }
    };
    (sending, gate, sender)
}

/// What was on its way is sent again, once its lease has lapsed.
pub(crate) async fn dropped_half_way<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage((0..2).map(|n| message("a", n))).await;
    let (broker, sending) = (Broker::default(), Arc::new(Semaphore::new(0)));
    let sender = {
        let (broker, sending) = (broker.clone(), Arc::clone(&sending));
        move |outgoing: StagedMessage| {
            let (broker, sending) = (broker.clone(), Arc::clone(&sending));
            async move {
                broker.take(outgoing.clone());
                sending.add_permits(1);
                if outgoing.attempt == 1 && broker.all().len() == 1 {
                    std::future::pending::<()>().await;
                }
                Ok::<_, std::io::Error>(())
            }
        }
    };
    let relay = Relay::new(shop.outbox.clone(), sender).send_timeout(Duration::from_secs(1));
    let running = tokio::spawn({
        let relay = relay.clone();
        async move { relay.run_once().await }
    });
    sending.acquire().await.unwrap().forget();
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    shop.drain(&relay).await;
    assert_eq!(broker.of("a"), ["0", "0", "1"]);
    assert_eq!(broker.all().iter().map(|outgoing| outgoing.attempt).collect::<Vec<_>>(), [1, 2, 1]);
}

pub(crate) async fn stopped_with_the_message_at_hand<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage((0..3).map(|n| message("a", n))).await;
    let broker = Broker::default();
    let (sending, gate, sender) = gated(&broker);
    let (tell, told) = oneshot::channel::<()>();
    let relay = Relay::new(shop.outbox.clone(), sender);
    let mut running =
        tokio::spawn(async move { relay.run(Duration::from_secs(3600), async { drop(told.await) }).await });
    sending.acquire().await.unwrap().forget();
    drop(tell);
    assert!(timeout(Duration::from_millis(100), &mut running).await.is_err(), "the message at hand comes first");
    gate.add_permits(3);
    running.await.unwrap();
    assert_eq!((broker.of("a"), shop.unsent().await), (numbers(0..1), 2));
}

pub(crate) async fn woken_after_a_commit<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let broker = Broker::default();
    let (tell, told) = oneshot::channel::<()>();
    let relay = Relay::new(shop.outbox.clone(), broker.sender());
    let running = tokio::spawn(async move { relay.run(Duration::from_secs(3600), async { drop(told.await) }).await });
    for n in 0..3 {
        shop.stage([message("a", n)]).await;
        shop.outbox.wake();
        while broker.all().len() <= n {
            sleep(Duration::from_millis(5)).await;
        }
    }
    drop(tell);
    running.await.unwrap();
    assert_eq!((broker.of("a"), shop.unsent().await), (numbers(0..3), 0));
}
