//! A consumer of RabbitMQ.

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
use tokio::time::sleep;
use tower::{Layer, Service, ServiceExt};
use tower_idempotency::{
    ConsumerLayer,
    consumer::{Action, Consumer},
};

use crate::payouts::{Failure, Order};

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
async fn declare(channel: &Channel, queue: &str) -> Result<(), Failure> {
    let dead = format!("{queue}.dead");
    channel.queue_declare(dead.as_str().into(), QueueDeclareOptions::durable(), FieldTable::default()).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-dead-letter-exchange".into(), AMQPValue::LongString("".into()));
    arguments.insert("x-dead-letter-routing-key".into(), AMQPValue::LongString(dead.into()));
    channel.queue_declare(queue.into(), QueueDeclareOptions::durable(), arguments).await?;
    Ok(())
}

/// Sends a message, and waits until the broker has it.
async fn publish(channel: &Channel, queue: &str, body: &str) -> Result<(), Failure> {
    channel.confirm_select(ConfirmSelectOptions::default()).await?;
    let persistent = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions::default();
    channel.basic_publish("".into(), queue.into(), options, body.as_bytes(), persistent).await?.await?;
    Ok(())
}

/// Sends these messages to a queue.
pub(crate) async fn send(url: &str, queue: &str, bodies: &[&str]) -> Result<(), Failure> {
    let channel = Connection::connect(url, ConnectionProperties::default()).await?.create_channel().await?;
    declare(&channel, queue).await?;
    for body in bodies {
        publish(&channel, queue, body).await?;
    }
    Ok(())
}
