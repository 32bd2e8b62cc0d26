//! What operators see and do.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use tower_idempotency::{
    Event, MemoryStore, Reconciler,
    reconcile::{Resolution, UnsentResolution},
    sql::{
        SqlStore,
        outbox::{Relay, StagedMessage},
    },
};

use super::shop::{Broker, Shop, message, numbers, text};
use crate::database::TestDatabase;

pub(crate) async fn what_waits_is_seen<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let none = shop.outbox.stats().await.unwrap();
    assert_eq!((none.unsent, none.failing, none.oldest), (0, 0, None));
    shop.stage((0..3).map(|n| message("a", n))).await;
    shop.run("UPDATE idempotency_outbox SET created_ms = created_ms - 60000 WHERE seq = 1").await;
    let stats = shop.outbox.stats().await.unwrap();
    let age = stats.oldest.unwrap().as_secs();
    assert_eq!((stats.unsent, stats.failing, (60..120).contains(&age)), (3, 0, true), "{stats:?}");
    let unsent = shop.outbox.unsent(Duration::ZERO, 2).await.unwrap();
    assert_eq!(unsent.iter().map(text).collect::<Vec<_>>(), numbers(0..2));
    let rest = shop.outbox.unsent_after(unsent[1].position(), Duration::ZERO, 2).await.unwrap();
    assert_eq!(rest.iter().map(text).collect::<Vec<_>>(), numbers(2..3));
    let stuck = shop.outbox.unsent(Duration::from_secs(50), 100).await.unwrap();
    assert_eq!(stuck.iter().map(text).collect::<Vec<_>>(), numbers(0..1));
}

pub(crate) async fn what_can_never_be_sent_is_discarded<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage((0..3).map(|n| message("a", n))).await;
    let broker = Broker::default();
    let sender = {
        let broker = broker.clone();
        move |outgoing: StagedMessage| {
            let fails = &*outgoing.message.payload == b"0";
            if !fails {
                broker.take(outgoing);
            }
            async move { if fails { Err("too large for the broker") } else { Ok(()) } }
        }
    };
    let relay = Relay::new(shop.outbox.clone(), sender);
    assert_eq!(relay.run_once().await.unwrap().failed, 1);
    let stuck = shop.outbox.unsent(Duration::ZERO, 1).await.unwrap().remove(0);
    assert_eq!(stuck.attempt, 1);
    // It is put off, unless an operator makes it due.
    assert_eq!(relay.run_once().await.unwrap().failed, 0);
    assert!(shop.outbox.retry(&stuck.message.id).await.unwrap());
    assert_eq!(relay.run_once().await.unwrap().failed, 1);
    assert!(shop.outbox.discard(&stuck.message.id).await.unwrap());
    assert!(!shop.outbox.retry(&stuck.message.id).await.unwrap());
    assert!(!shop.outbox.discard(&stuck.message.id).await.unwrap());
    shop.drain(&relay).await;
    assert_eq!(broker.of("a"), ["1", "2"]);
    let sent = broker.all().remove(0).message.id;
    assert!(!shop.outbox.discard(&sent).await.unwrap(), "it was sent");
}

pub(crate) async fn what_was_sent_is_removed<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage((0..130).map(|n| message(&format!("k{n}"), n))).await;
    Relay::new(shop.outbox.clone(), Broker::default().sender()).run_once().await.unwrap();
    shop.stage([message("a", 0)]).await;
    assert_eq!(shop.outbox.purge(Duration::from_secs(60), 1000).await.unwrap(), 0);
    assert_eq!(shop.outbox.purge(Duration::ZERO, 70).await.unwrap(), 70);
    assert_eq!(shop.outbox.purge(Duration::ZERO, 1000).await.unwrap(), 60);
    let left = shop.number("SELECT COUNT(*) FROM idempotency_outbox").await;
    assert_eq!((left, shop.unsent().await), (1, 1));
}

pub(crate) async fn what_waits_is_asked_about<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    shop.stage((0..3).map(|n| message("a", n))).await;
    shop.run("UPDATE idempotency_outbox SET created_ms = created_ms - 60000 WHERE seq < 3").await;
    // Of two processes.
    let store = MemoryStore::new();
    let reconciler = || {
        Reconciler::new(store.clone(), |_| async { Resolution::Leave }).unsent(
            shop.outbox.clone(),
            Duration::from_secs(50),
            |unsent| async move {
                match &*unsent.outgoing().message.payload {
                    b"0" => UnsentResolution::Discard,
                    _ => UnsentResolution::Leave,
                }
            },
        )
    };
    let dry = reconciler().dry_run().run_once().await.unwrap();
    assert_eq!((dry.discarded, dry.left, shop.unsent().await), (1, 1, 3));
    let first = reconciler().run_once().await.unwrap();
    assert_eq!((first.discarded, first.left, shop.unsent().await), (1, 1, 2));
    // It was left, by whichever process.
    let second = reconciler().run_once().await.unwrap();
    assert_eq!((second.discarded, second.left, second.skipped), (0, 0, 1));

    // A closure that panics leaves the message.
    let panics = Reconciler::new(MemoryStore::new(), |_| async { Resolution::Leave }).unsent(
        shop.outbox.clone(),
        Duration::from_secs(50),
        |_| async { panic!("told to panic") },
    );
    assert_eq!(panics.run_once().await.unwrap().left, 1);
    assert_eq!(shop.unsent().await, 2);
}

/// The observers of the store receive what becomes of its messages.
pub(crate) async fn what_happens_is_reported<D: TestDatabase>() {
    let shop = Shop::<D>::new().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = seen.clone();
    let line = move |event: &Event<'_>| {
        lines.lock().unwrap().push(match event {
            Event::OutboxStaged { topic, .. } => format!("{topic} staged"),
            Event::OutboxSent { topic, attempt, staged, .. } => {
                let is_soon = staged.elapsed().unwrap_or_default() < Duration::from_secs(60);
                format!("{topic} sent at try {attempt}, soon: {is_soon}")
            }
            Event::OutboxRetried { topic, attempt, error, .. } => format!("{topic} failed at try {attempt}: {error}"),
            Event::OutboxStuck { topic, attempts, discarded, .. } => {
                format!("{topic} stuck after {attempts}, discarded: {discarded}")
            }
            Event::OutboxBacklog { unsent, oldest, .. } => format!("{unsent} wait, since: {}", oldest.is_some()),
            Event::Purged { .. } => return,
            event => event.name().to_owned(),
        });
    };
    let line = Arc::new(line);
    let outbox = SqlStore::<D>::builder().without_purge().observer(line.clone()).pool(shop.pool.clone()).outbox();
    let mut transaction = shop.pool.begin().await.unwrap();
    for n in 0..2 {
        outbox.stage(&mut transaction, &message("a", n)).await.unwrap();
    }
    transaction.commit().await.unwrap();
    let sender = |outgoing: StagedMessage| async move {
        if &*outgoing.message.payload == b"0" && outgoing.attempt == 1 { Err("away") } else { Ok(()) }
    };
    let relay = Relay::new(outbox.clone(), sender).backoff(Duration::from_millis(500), Duration::from_millis(500));
    relay.run_once().await.unwrap();
    let reconciler = Reconciler::new(MemoryStore::new(), |_| async { Resolution::Leave }).observer(line).unsent(
        outbox.clone(),
        Duration::ZERO,
        |_| async { UnsentResolution::Leave },
    );
    reconciler.run_once().await.unwrap();
    shop.drain(&relay).await;
    relay.run(Duration::from_secs(1), tokio::time::sleep(Duration::from_millis(200))).await;
    let topic = &message("a", 0).topic;
    let expected = [
        "T staged",
        "T staged",
        "T failed at try 1: away",
        "T stuck after 1, discarded: false",
        "T stuck after 0, discarded: false",
        "reconciled",
        "T sent at try 2, soon: true",
        "T sent at try 1, soon: true",
        "0 wait, since: false",
    ];
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    // The reconciler asks about several at once.
    seen[3..5].sort_by(|one, other| other.cmp(one));
    assert_eq!(seen, expected.map(|line| line.replacen('T', topic, 1)));
}
