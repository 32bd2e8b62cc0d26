//! A consumer of JetStream of NATS.

use std::time::Duration;

use async_nats::jetstream::{
    self, AckKind, Context, Message,
    consumer::pull,
    stream::{Config, RetentionPolicy},
};
use futures_util::StreamExt;
use tower::{Layer, Service, ServiceExt};
use tower_idempotency::{
    ConsumerLayer,
    consumer::{Action, Consumer},
};

use crate::payouts::{Failure, Order};

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
async fn declare(jetstream: &Context, stream: &str) -> Result<(), Failure> {
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
async fn publish(jetstream: &Context, stream: &str, body: &str) -> Result<(), Failure> {
    jetstream.publish(stream.to_owned(), body.to_owned().into()).await?.await?;
    Ok(())
}

/// Sends these messages to a stream.
pub(crate) async fn send(url: &str, stream: &str, bodies: &[&str]) -> Result<(), Failure> {
    let jetstream = jetstream::new(async_nats::connect(url).await?);
    declare(&jetstream, stream).await?;
    for body in bodies {
        publish(&jetstream, stream, body).await?;
    }
    Ok(())
}
