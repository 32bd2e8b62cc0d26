//! JetStream of NATS.

use std::path::PathBuf;

use async_nats::jetstream::{self, Context};

use crate::{
    nats,
    tests::{
        scenarios::{self, Broker},
        server::Server,
    },
};

struct Nats {
    server: Server,
    jetstream: Context,
}

impl Nats {
    async fn messages(&self, stream: &str) -> u64 {
        self.jetstream.get_stream(stream).await.unwrap().cached_info().state.messages
    }
}

impl Broker for Nats {
    fn url(&self) -> String {
        url(&self.server)
    }

    fn store(&self, queue: &str) -> PathBuf {
        self.server.folder().join(format!("{queue}.db"))
    }

    async fn send(&self, queue: &str, bodies: &[String]) {
        let bodies: Vec<_> = bodies.iter().map(String::as_str).collect();
        nats::send(&self.url(), queue, &bodies).await.unwrap();
    }

    /// A work queue keeps what nobody has acknowledged.
    async fn is_empty(&self, queue: &str) -> bool {
        self.messages(queue).await == 0
    }

    async fn dead(&self, queue: &str) -> usize {
        usize::try_from(self.messages(&format!("{queue}-dead")).await).unwrap()
    }
}

fn url(server: &Server) -> String {
    format!("nats://127.0.0.1:{}", server.port())
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_paid_out_once() {
    let server = Server::nats();
    let jetstream = jetstream::new(async_nats::connect(url(&server)).await.unwrap());
    Box::pin(scenarios::all(&Nats { server, jetstream })).await;
}
