//! Pays out once per order, while RabbitMQ delivers each message at least once.
//!
//! ```sh
//! cargo run --features sqlite --example rabbitmq -- amqp://127.0.0.1:5672
//! ```
//!
//! It sends itself some orders, twice each, one that the bank declines and one without a number, and consumes until it
//! is asked to end. Start it again, or several of it at once: no order is paid out a second time. What it knows is in
//! `payouts.db`, in the folder for temporary files.

use std::{env, error::Error, time::Duration};

use futures_util::StreamExt;
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    message::Delivery,
    options::{
        BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions,
        ConfirmSelectOptions, QueueDeclareOptions,
    },
    types::{AMQPValue, FieldTable},
};
use serde::Deserialize;
use tokio::time::sleep;
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

    let channel = Connection::connect(&url, ConnectionProperties::default()).await?.create_channel().await?;
    declare(&channel, "payouts").await?;
    for order in [r#"{"number":"order-7","amount":100}"#, r#"{"number":"order-8","amount":250}"#] {
        publish(&channel, "payouts", order).await?;
        publish(&channel, "payouts", order).await?;
    }
    publish(&channel, "payouts", r#"{"number":"order-9","amount":0}"#).await?;
    publish(&channel, "payouts", r#"{"amount":100}"#).await?;

    tokio::select! {
        ended = consume(&url, "payouts", layer, service_fn(pay)) => ended?,
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

/// Consumes a queue, ten messages at a time, until the connection ends.
pub(crate) async fn consume<S>(url: &str, queue: &str, layer: ConsumerLayer<Order>, payouts: S) -> Result<(), Failure>
where
    S: Service<Order, Response = (), Error = Failure> + Clone + Send + 'static,
    S::Future: Send,
{
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    declare(&channel, queue).await?;
    channel.basic_qos(10, BasicQosOptions::default()).await?;
    let (options, arguments) = (BasicConsumeOptions::default(), FieldTable::default());
    let mut deliveries = channel.basic_consume(queue.into(), "".into(), options, arguments).await?;
    let consumer = layer.layer(payouts);
    while let Some(delivery) = deliveries.next().await {
        let (consumer, delivery) = (consumer.clone(), delivery?);
        tokio::spawn(async move {
            if let Err(error) = handle(consumer, delivery).await {
                // Not acknowledged: it comes again.
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

async fn handle<S>(consumer: Consumer<S, Order>, delivery: Delivery) -> Result<(), Failure>
where
    S: Service<Order, Response = (), Error = Failure> + Clone + Send + 'static,
    S::Future: Send,
{
    let order = serde_json::from_slice(&delivery.data).unwrap_or_default();
    let outcome = consumer.oneshot(order).await?;
    match outcome.action() {
        Action::Acknowledge => delivery.ack(BasicAckOptions::default()).await?,
        Action::Requeue { delay } => {
            // RabbitMQ itself knows no delay. If this process ends, the message comes again at once.
            sleep(delay).await;
            delivery.nack(BasicNackOptions { requeue: true, multiple: false }).await?
        }
        // To the queue for those that no delivery helps.
        _ => delivery.nack(BasicNackOptions { requeue: false, multiple: false }).await?,
    };
    Ok(())
}

/// A queue that survives the broker, and the one beside it for what is put aside.
pub(crate) async fn declare(channel: &Channel, queue: &str) -> Result<(), Failure> {
    let dead = format!("{queue}.dead");
    channel.queue_declare(dead.as_str().into(), QueueDeclareOptions::durable(), FieldTable::default()).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-dead-letter-exchange".into(), AMQPValue::LongString("".into()));
    arguments.insert("x-dead-letter-routing-key".into(), AMQPValue::LongString(dead.into()));
    channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), arguments).await?;
    Ok(())
}

/// Sends a message, and waits until the broker has it.
pub(crate) async fn publish(channel: &Channel, queue: &str, body: &str) -> Result<(), Failure> {
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions::default();
    channel.basic_publish("".into(), queue.into(), options, body.as_bytes(), persistent).await?.await?;
    Ok(())
}
