//! RabbitMQ.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use lapin::{Connection, ConnectionProperties, options::QueueDeclareOptions, types::FieldTable};
use tokio::time::sleep;

use crate::{
    rabbitmq,
    tests::{
        scenarios::{self, Broker},
        server::Server,
    },
};

struct RabbitMq {
    server: Server,
    connection: Connection,
}

impl RabbitMq {
    /// How many messages are ready to be delivered, and how many consumers there are.
    async fn count(&self, queue: &str) -> (u32, u32) {
        let channel = self.connection.create_channel().await.unwrap();
        let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::durable() };
        let queue = channel.queue_declare(queue.into(), passive, FieldTable::default()).await.unwrap();
        (queue.message_count(), queue.consumer_count())
    }
}

impl Broker for RabbitMq {
    fn url(&self) -> String {
        url(&self.server)
    }

    fn store(&self, queue: &str) -> PathBuf {
        self.server.folder().join(format!("{queue}.db"))
    }

    async fn send(&self, queue: &str, bodies: &[String]) {
        let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
        rabbitmq::send(&self.url(), queue, &bodies).await.unwrap();
    }

    /// What consumers have in hand does not count, so it waits until there is none.
    async fn is_empty(&self, queue: &str) -> bool {
        let began = Instant::now();
        loop {
            let (messages, consumers) = self.count(queue).await;
            if consumers == 0 {
                return messages == 0;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{queue} still has {consumers} consumers");
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn dead(&self, queue: &str) -> usize {
        self.count(&format!("{queue}.dead")).await.0 as usize
    }
}

fn url(server: &Server) -> String {
    format!("amqp://guest:guest@127.0.0.1:{}", server.port())
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_paid_out_once() {
    let server = Server::rabbitmq();
    let connection = Connection::connect(&url(&server), ConnectionProperties::default()).await.unwrap();
    Box::pin(scenarios::all(&RabbitMq { server, connection })).await;
}
