//! Pays out once per order, while JetStream of NATS delivers each message at least once.
//!
//! ```sh
//! cargo run --features sqlite --example nats -- nats://127.0.0.1:4222
//! ```
//!
//! It sends itself some orders, twice each, one that the bank declines and one without a number, and consumes until it
//! is asked to end. Start it again, or several of it at once: no order is paid out a second time. What it knows is in
//! `payouts.db`, in the folder for temporary files.

use std::{env, error::Error, time::Duration};

use async_nats::jetstream::{
    self, AckKind, Context, Message,
    consumer::pull,
    stream::{Config, RetentionPolicy},
};
use futures_util::StreamExt;
use serde::Deserialize;
use tower::{Layer, Service, ServiceExt, service_fn};
use tower_idempotency::{
    BackgroundTasks, ConsumerLayer, Fingerprint, Operation, SqliteStore,
    consumer::{Action, Consumer},
    store::Store,
};

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// What a message says. One that says nothing that can be read has no number either, and is put aside.
#[derive(Default, Deserialize)]
pub(crate) struct Order {
    pub(crate) number: Option<String>,
    #[serde(default)]
    pub(crate) amount: u64,
    #[serde(skip)]
    pub(crate) operation: Option<Operation>,
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = env::args().nth(1).ok_or("the URL of a broker is missing")?;
    let store = SqliteStore::open(env::temp_dir().join("payouts.db")).await?;
    store.migrate().await?;
    let background_tasks = BackgroundTasks::new();
    let layer = payouts(store).background_tasks(background_tasks.clone());

    let jetstream = jetstream::new(async_nats::connect(&url).await?);
    declare(&jetstream, "payouts").await?;
    for order in [r#"{"number":"order-7","amount":100}"#, r#"{"number":"order-8","amount":250}"#] {
        publish(&jetstream, "payouts", order).await?;
        publish(&jetstream, "payouts", order).await?;
    }
    publish(&jetstream, "payouts", r#"{"number":"order-9","amount":0}"#).await?;
    publish(&jetstream, "payouts", r#"{"amount":100}"#).await?;

    tokio::select! {
        ended = consume(&url, "payouts", Duration::from_secs(30), layer, service_fn(pay)) => ended?,
        told = tokio::signal::ctrl_c() => told?,
    }
    // What is being paid out is brought to its end.
    background_tasks.wait().await;
    Ok(())
}

/// The bank, for this example.
async fn pay(order: Order) -> Result<(), Failure> {
    let operation = order.operation.ok_or("no operation")?;
    if order.amount == 0 {
        return Err("the bank declines to pay nothing".into());
    }
    // A bank that takes a key gets the same one at each attempt.
    println!("paid {} for {}, attempt {}", order.amount, operation.key(), operation.attempt());
    println!("  with Idempotency-Key: {}", operation.child_key("bank"));
    Ok(())
}

/// The key is the order's number, and another amount under the same number is another message.
pub(crate) fn payouts(store: impl Store) -> ConsumerLayer<Order> {
    let amount = |order: &Order| Fingerprint::builder().part(order.amount.to_be_bytes()).build();
    ConsumerLayer::with_fingerprint(store, "payouts", |order: &Order| order.number.clone(), amount)
        .operation(|order, operation| order.operation = Some(operation))
        .attempts(3)
        .retention(Duration::from_secs(7 * 24 * 60 * 60))
}

/// Consumes a stream, ten messages at a time. The broker delivers a message again that was not acknowledged within
/// `patience`; if it is still being paid out then, it is given back.
pub(crate) async fn consume<S>(
    url: &str,
    stream: &str,
    patience: Duration,
    layer: ConsumerLayer<Order>,
    payouts: S,
) -> Result<(), Failure>
where
    S: Service<Order, Response = (), Error = Failure> + Clone + Send + 'static,
    S::Future: Send,
{
    let jetstream = jetstream::new(async_nats::connect(url).await?);
    declare(&jetstream, stream).await?;
    let config = pull::Config {
        durable_name: Some("payouts".into()),
        ack_wait: patience,
        max_ack_pending: 10,
        ..pull::Config::default()
    };
    let durable = jetstream.get_stream(stream).await?.get_or_create_consumer("payouts", config).await?;
    let mut messages = durable.messages().await?;
    let consumer = layer.layer(payouts);
    while let Some(message) = messages.next().await {
        let (consumer, jetstream, message) = (consumer.clone(), jetstream.clone(), message?);
        tokio::spawn(async move {
            if let Err(error) = handle(consumer, jetstream, message).await {
                // Not acknowledged: it comes again.
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

async fn handle<S>(consumer: Consumer<S, Order>, jetstream: Context, message: Message) -> Result<(), Failure>
where
    S: Service<Order, Response = (), Error = Failure> + Clone + Send + 'static,
    S::Future: Send,
{
    let order = serde_json::from_slice(&message.payload).unwrap_or_default();
    let outcome = consumer.oneshot(order).await?;
    match outcome.action() {
        Action::Acknowledge => message.double_ack().await,
        Action::Requeue { delay } => message.ack_with(AckKind::Nak(Some(delay))).await,
        _ => {
            // JetStream itself has no place for those that no delivery helps.
            jetstream.publish(format!("{}.dead", message.subject), message.payload.clone()).await?.await?;
            message.double_ack_with(AckKind::Term).await
        }
    }
}

/// A stream, and the one beside it for what is put aside.
pub(crate) async fn declare(jetstream: &Context, stream: &str) -> Result<(), Failure> {
    let work = Config {
        name: stream.into(),
        subjects: vec![stream.into()],
        retention: RetentionPolicy::WorkQueue,
        ..Config::default()
    };
    jetstream.get_or_create_stream(work).await?;
    let dead = format!("{stream}.dead");
    let name = format!("{stream}-dead");
    jetstream.get_or_create_stream(Config { name, subjects: vec![dead], ..Config::default() }).await?;
    Ok(())
}

/// Sends a message, and waits until the broker has it.
pub(crate) async fn publish(jetstream: &Context, stream: &str, body: &str) -> Result<(), Failure> {
    jetstream.publish(stream.to_owned(), body.to_owned().into()).await?.await?;
    Ok(())
}
