//! Pays out once per order, while a broker delivers each message at least once: RabbitMQ, or JetStream of NATS.
//!
//! ```sh
//! cargo run -p brokers -- amqp://127.0.0.1:5672
//! cargo run -p brokers -- nats://127.0.0.1:4222
//! ```
//!
//! It sends itself some orders, twice each, one that the bank declines and one without a number, and consumes until it
//! is asked to end. Start it again, or several of it at once: no order is paid out a second time. What it knows is in
//! `payouts.db`, in the folder for temporary files.

mod nats;
mod payouts;
mod rabbitmq;
#[cfg(test)]
mod tests;

use std::{env, time::Duration};

use tower::service_fn;
use tower_idempotency::{BackgroundTasks, SqliteStore};

use self::payouts::{Failure, pay};

const QUEUE: &str = "payouts";
const ORDERS: [&str; 6] = [
    r#"{"number":"order-7","amount":100}"#,
    r#"{"number":"order-7","amount":100}"#,
    r#"{"number":"order-8","amount":250}"#,
    r#"{"number":"order-8","amount":250}"#,
    r#"{"number":"order-9","amount":0}"#,
    r#"{"amount":100}"#,
];

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let url = env::args().nth(1).ok_or("the URL of a broker is missing")?;
    let store = SqliteStore::open(env::temp_dir().join("payouts.db")).await?;
    store.migrate().await?;
    let background_tasks = BackgroundTasks::new();
    let layer = payouts::layer(store).background_tasks(background_tasks.clone());
    let consume = async {
        if url.starts_with("amqp") {
            rabbitmq::send(&url, QUEUE, &ORDERS).await?;
            rabbitmq::consume(&url, QUEUE, layer, service_fn(pay)).await
        } else {
            nats::send(&url, QUEUE, &ORDERS).await?;
            nats::consume(&url, QUEUE, Duration::from_secs(30), layer, service_fn(pay)).await
        }
    };
    tokio::select! {
        ended = consume => ended?,
        told = tokio::signal::ctrl_c() => told?,
    }
    // What is being paid out is brought to its end.
    background_tasks.wait().await;
    Ok(())
}
