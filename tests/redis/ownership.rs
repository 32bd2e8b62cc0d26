//! Whose key it is, over HTTP; the store is connected to anew between the attempts.

use std::sync::Mutex;

use tower_idempotency::RedisStore;

use crate::server::Server;

#[path = "../http/common/ownership.rs"]
mod asked;

async fn whose_key_it_is(url: &str) {
    asked::whose_key_it_is(|| async { RedisStore::connect(url).await.unwrap() }).await;
}

/// It is started again each time.
#[tokio::test]
async fn on_one_server() {
    let server = Mutex::new(Server::start(&["--appendonly", "yes", "--appendfsync", "always"]));
    let connect = || {
        let mut server = server.lock().unwrap();
        server.kill();
        server.start_again();
        let url = server.url();
        async move { RedisStore::connect(&url).await.unwrap() }
    };
    asked::whose_key_it_is(connect).await;
}

#[cfg(feature = "redis-cluster")]
#[tokio::test(flavor = "multi_thread")]
async fn on_a_cluster() {
    whose_key_it_is(&crate::cluster::nodes::Nodes::start().url()).await;
}

#[cfg(feature = "redis-sentinel")]
#[tokio::test(flavor = "multi_thread")]
async fn on_a_master_that_sentinels_watch() {
    whose_key_it_is(&crate::sentinel::group::Group::start().await.url()).await;
}
