//! The rules of every store.

use std::{future::ready, sync::Arc};

use tower_idempotency::{
    RedisStore,
    store::StoreAdmin,
    testing::{FaultyStore, suite},
};

use crate::{server::Server, walk};

#[tokio::test]
async fn on_one_thread() {
    let server = Server::start(&[]);
    let store = server.store().await;
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_many_threads() {
    let server = Server::start(&[]);
    let store = server.store().await;
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

/// The scripts do what the rules do.
#[tokio::test]
async fn a_random_walk_agrees_with_the_rules() {
    let server = Server::start(&[]);
    let store = server.store().await;
    walk::agrees_with_the_rules(|namespace| store.namespace(namespace)).await;
}

/// As processes share a server: no two handles have a connection in common.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_connection_for_each_handle() {
    let server = Server::start(&[]);
    let url = server.url();
    let connect = |namespace: &str| {
        let (url, namespace) = (url.clone(), namespace.to_owned());
        async move { RedisStore::builder().namespace(&namespace).connect(&url).await.unwrap() }
    };
    suite::run(&connect).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_connection_of_the_applications() {
    let server = Server::start(&[]);
    let connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let store = RedisStore::builder().with_connection(connection).await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn within_another_store_and_without_its_type() {
    let server = Server::start(&[]);
    let store = server.store().await;
    suite::run(&|namespace: &str| ready(Arc::new(FaultyStore::new(store.namespace(namespace))) as Arc<dyn StoreAdmin>))
        .await;
}

#[cfg(feature = "sealed")]
#[tokio::test(flavor = "multi_thread")]
async fn with_sealed_records() {
    use tower_idempotency::store::{SealedStore, SealingKeys};

    let server = Server::start(&[]);
    let (store, keys) = (server.store().await, SealingKeys::new([1; 32]).unwrap());
    suite::run(&|namespace: &str| ready(SealedStore::new(store.namespace(namespace), keys.clone()))).await;
}

/// The access rules that the guide names suffice.
#[tokio::test(flavor = "multi_thread")]
async fn with_no_more_rights_than_the_guide_says() {
    let server = Server::start(&[]);
    let rule = include_str!("../../docs/redis.md").lines().find(|line| line.starts_with("ACL SETUSER")).unwrap();
    assert!(server.tell(rule).starts_with("+OK"));
    for verb in ["delex", "delifeq"] {
        // A server refuses a rule on a command that it does not have.
        server.tell(&format!("ACL SETUSER shop +{verb}"));
    }
    let url = server.url().replace("redis://", "redis://shop:password@");
    let store = RedisStore::connect(&url).await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
    // What was refused besides: the driver says its name, which it need not.
    let log = server.tell("ACL LOG");
    let lines: Vec<_> = log.lines().collect();
    let refused: Vec<_> = lines.windows(3).filter(|lines| lines[0] == "object").map(|lines| lines[2]).collect();
    assert!(refused.iter().all(|what| what.starts_with("client")), "{refused:?}");
}
