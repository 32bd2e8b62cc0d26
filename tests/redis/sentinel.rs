//! A master and two replicas, watched by three sentinels.

use std::{
    fs,
    future::ready,
    net::{Ipv4Addr, TcpListener},
    process::{Child, Command, Stdio},
    time::Duration,
};

use tower_idempotency::{
    RedisStore, StoreErrorKind,
    store::{Claimed, Operator, Store},
    testing::suite,
};

use crate::{
    claim, key, replays,
    server::{Server, tell},
    settled,
};

struct Group {
    servers: Vec<Server>,
    sentinels: Vec<(Child, u16)>,
}

impl Group {
    async fn start() -> Self {
        let master = Server::start(&[]);
        let port = master.port().to_string();
        let replica =
            || Server::start(&["--replicaof", &format!("127.0.0.1 {port}"), "--repl-diskless-sync-delay", "0"]);
        let servers = vec![replica(), replica(), master].into_iter().rev().collect::<Vec<_>>();
        let mut group = Self { servers, sentinels: Vec::new() };
        for n in 0..3 {
            let sentinel = group.sentinel(n);
            group.sentinels.push(sentinel);
        }
        group
            .wait("all are known", |group| {
                group.sentinels.iter().all(|(_, port)| {
                    let master = tell(*port, "SENTINEL MASTER shop").unwrap_or_default().replace("\r\n", " ");
                    master.contains("num-slaves $1 2") && master.contains("num-other-sentinels $1 2")
                })
            })
            .await;
        group
    }

    fn sentinel(&self, n: usize) -> (Child, u16) {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let file = self.servers[n].folder().join("sentinel.conf");
        let rules = format!(
            "port {port}\nbind 127.0.0.1\nloglevel warning\nsentinel monitor shop 127.0.0.1 {} 2\n\
             sentinel down-after-milliseconds shop 1000\nsentinel failover-timeout shop 5000\n",
            self.servers[0].port()
        );
        fs::write(&file, rules).unwrap();
        let child = Command::new("redis-server").arg(&file).arg("--sentinel").stdout(Stdio::null()).spawn().unwrap();
        (child, port)
    }

    fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|(_, port)| format!("127.0.0.1:{port}")).collect();
        format!("redis-sentinel://{}/shop", hosts.join(","))
    }

    async fn wait(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        for _ in 0..600 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{what}, and does not");
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for (child, _) in &mut self.sentinels {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_every_store() {
    let group = Group::start().await;
    let store = RedisStore::connect(&group.url()).await.unwrap();
    suite::run(&|namespace: &str| ready(store.namespace(namespace))).await;
}

/// The master dies and a replica is made one: errors pass, and what was replicated is replayed.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_dies() {
    let mut group = Group::start().await;
    let store = RedisStore::connect(&group.url()).await.unwrap();
    for n in 0..50 {
        settled(&store, &key(&n.to_string())).await;
    }
    group
        .wait("replicas follow", |group| {
            group.servers[1..].iter().all(|server| server.tell("DBSIZE").starts_with(":50"))
        })
        .await;
    tokio::time::sleep(Duration::from_millis(300)).await;

    group.servers[0].kill();
    let mut tries = 0;
    loop {
        match store.claim(&key("new"), &claim()).await {
            Ok(claimed) => break assert!(matches!(claimed, Claimed::Granted(_)), "{claimed:?}"),
            Err(error) => assert!(error.is_temporary(), "{error:?}"),
        }
        tries += 1;
        assert!(tries < 600, "no replica becomes a master");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for n in 0..50 {
        replays(&store, &key(&n.to_string())).await;
    }
    assert_eq!(store.stats().await.unwrap().settled, 50);
}

#[tokio::test]
async fn sentinels_that_are_away() {
    let error = RedisStore::connect("redis-sentinel://:secret@127.0.0.1:1,127.0.0.1:2/shop").await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error:?}");
    assert!(!format!("{error:?}").contains("secret"), "{error:?}");
}
