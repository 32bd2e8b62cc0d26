//! A database with an outbox, and senders that write down what they are given.

use std::{
    fmt::Display,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use sqlx::Pool;
use tower_idempotency::{
    sql::SqlStore,
    sql::outbox::{Message, Outbox, Relay, Sender, StagedMessage},
};

use crate::database::TestDatabase;

/// A process of the shop.
pub(crate) struct Shop<D: TestDatabase> {
    pub(crate) pool: Pool<D>,
    pub(crate) store: SqlStore<D>,
    pub(crate) outbox: Outbox<D>,
    pub(crate) place: Arc<D::Place>,
}

impl<D: TestDatabase> Shop<D> {
    pub(crate) async fn new() -> Self {
        let place = D::place().await;
        Self::on(&place).await
    }

    pub(crate) async fn on(place: &Arc<D::Place>) -> Self {
        let pool = D::connect_patiently(&D::url(place), 8).await;
        let store = SqlStore::<D>::new(pool.clone());
        let outbox = store.outbox();
        outbox.migrate().await.unwrap();
        Self { pool, store, outbox, place: Arc::clone(place) }
    }

    /// Commits each message by itself.
    pub(crate) async fn stage(&self, messages: impl IntoIterator<Item = Message>) {
        for message in messages {
            let mut transaction = self.pool.begin().await.unwrap();
            self.outbox.stage(&mut transaction, &message).await.unwrap();
            transaction.commit().await.unwrap();
        }
    }

    pub(crate) async fn run(&self, text: &str) {
        D::say(&mut *self.pool.acquire().await.unwrap(), text).await.unwrap();
    }

    pub(crate) async fn number(&self, text: &str) -> i64 {
        D::tell(&mut *self.pool.acquire().await.unwrap(), text).await.unwrap()
    }

    pub(crate) async fn unsent(&self) -> u64 {
        self.outbox.stats().await.unwrap().unsent
    }

    /// Has a relay run until all is sent.
    pub(crate) async fn drain<S: Sender>(&self, relay: &Relay<D, S>) {
        let began = Instant::now();
        while self.unsent().await > 0 {
            relay.run_once().await.unwrap();
            assert!(began.elapsed() < Duration::from_secs(60), "it does not come to an end");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// What was sent: key and payload.
#[derive(Clone, Default)]
pub(crate) struct Broker(Arc<Mutex<Vec<StagedMessage>>>);

impl Broker {
    pub(crate) fn take(&self, outgoing: StagedMessage) {
        self.0.lock().unwrap().push(outgoing);
    }

    pub(crate) fn sender(&self) -> impl Sender + use<> {
        let broker = self.clone();
        move |outgoing: StagedMessage| {
            broker.take(outgoing);
            async { Ok::<_, std::io::Error>(()) }
        }
    }

    pub(crate) fn all(&self) -> Vec<StagedMessage> {
        self.0.lock().unwrap().clone()
    }

    /// What was sent of a key.
    pub(crate) fn of(&self, key: &str) -> Vec<String> {
        self.all().iter().filter(|outgoing| outgoing.message.key.as_deref() == Some(key)).map(text).collect()
    }
}

pub(crate) fn text(outgoing: &StagedMessage) -> String {
    String::from_utf8(outgoing.message.payload.to_vec()).unwrap()
}

pub(crate) fn message(key: &str, payload: impl Display) -> Message {
    Message::new("orders", payload.to_string()).key(key)
}

pub(crate) fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}
