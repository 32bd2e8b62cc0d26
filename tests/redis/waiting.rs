//! A waiter learns of the end at once, from another process too.

use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};
use tower_idempotency::{
    RedisStore,
    store::{Claim, Finished, Store, StoreAdmin},
};

use crate::{MINUTE, claim, granted, key, server::Server, settlement};

/// Far less than the pause after which a record is looked at without a message.
const AT_ONCE: Duration = Duration::from_millis(400);

async fn waits(store: &RedisStore, name: &str, first: &Claim) -> tokio::task::JoinHandle<Instant> {
    let (store, key, holder) = (store.clone(), key(name), first.claimant);
    let waiter = tokio::spawn(async move {
        store.changed(&key, holder, MINUTE).await.unwrap();
        Instant::now()
    });
    sleep(Duration::from_millis(200)).await;
    assert!(!waiter.is_finished());
    waiter
}

#[tokio::test]
async fn a_message_wakes_waiters_of_all_processes() {
    let server = Server::start(&[]);
    let stores = [server.store().await, server.store().await, server.store().await];
    for (n, name) in ["a", "b", "c"].into_iter().enumerate() {
        let first = claim();
        granted(&stores[0], &key(name), &first).await;
        let mut waiters = Vec::new();
        for store in &stores {
            waiters.push(waits(store, name, &first).await);
        }
        let began = Instant::now();
        match n {
            0 => drop(stores[0].settle(&key(name), &settlement(&first)).await.unwrap()),
            1 => drop(stores[0].release(&key(name), &crate::release(&first)).await.unwrap()),
            _ => assert!(stores[0].forget(&key(name)).await.unwrap()),
        }
        for waiter in waiters {
            let woken = timeout(MINUTE, waiter).await.unwrap().unwrap() - began;
            assert!(woken < AT_ONCE, "{name}: after {woken:?}");
        }
    }
}

#[tokio::test]
async fn a_lost_message_delays_and_no_more() {
    let server = Server::start(&[]);
    let (store, other) = (server.store().await, server.store().await);
    let first = claim();
    granted(&store, &key("a"), &first).await;
    let waiter = waits(&other, "a", &first).await;
    // The mark in the record goes with a value that is written by hand, and with it the message.
    let name = name_of(&server, "a").await;
    let mut connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("SETRANGE").arg(&name).arg(22).arg(&b"\0"[..]).query_async(&mut connection).await.unwrap();
    store.settle(&key("a"), &settlement(&first)).await.unwrap();
    timeout(Duration::from_secs(10), waiter).await.unwrap().unwrap();
}

#[tokio::test]
async fn waiting_outlives_its_connection() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (store, other) = (server.store().await, server.store().await);
    let first = claim();
    granted(&store, &key("a"), &first).await;
    let waiter = waits(&other, "a", &first).await;
    for _ in 0..3 {
        server.cut();
        sleep(Duration::from_millis(300)).await;
        assert!(!waiter.is_finished());
    }
    let began = Instant::now();
    store.settle(&key("a"), &settlement(&first)).await.unwrap();
    let woken = timeout(MINUTE, waiter).await.unwrap().unwrap() - began;
    assert!(woken < AT_ONCE, "after {woken:?}");
    server.kill();
}

#[tokio::test]
async fn without_the_right_to_send_and_hear_waiters_look() {
    let server = Server::start(&[]);
    assert!(server.tell("ACL SETUSER mute on >secret ~* resetchannels +@all -publish -subscribe").starts_with("+OK"));
    let store = RedisStore::connect(&server.url().replace("redis://", "redis://mute:secret@")).await.unwrap();
    let first = claim();
    granted(&store, &key("a"), &first).await;
    let waiter = waits(&store, "a", &first).await;
    assert!(matches!(store.settle(&key("a"), &settlement(&first)).await.unwrap(), Finished::Done));
    timeout(Duration::from_secs(5), waiter).await.unwrap().unwrap();
}

#[tokio::test]
async fn nobody_is_told_where_nobody_waits() {
    let server = Server::start(&[]);
    let store = server.store().await;
    for name in ["a", "b", "c"] {
        let first = claim();
        granted(&store, &key(name), &first).await;
        assert!(matches!(store.settle(&key(name), &settlement(&first)).await.unwrap(), Finished::Done));
    }
    assert!(!server.tell("INFO commandstats").contains("publish"));
    assert!(!server.tell("CLIENT LIST TYPE pubsub").contains("sub="));
}

#[tokio::test]
async fn who_waits_no_more_leaves_one_connection_and_no_more() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let first = claim();
    granted(&store, &key("a"), &first).await;
    for _ in 0..50 {
        let waiter = {
            let (store, holder) = (store.clone(), first.claimant);
            tokio::spawn(async move { store.changed(&key("a"), holder, MINUTE).await })
        };
        tokio::task::yield_now().await;
        waiter.abort();
        let _ = waiter.await;
    }
    waits(&store, "a", &first).await.abort();
    let clients = server.tell("CLIENT LIST TYPE pubsub");
    assert_eq!(clients.matches(" sub=1 ").count(), 1, "{clients}");
}

/// As many as wait, the server is asked for one of them.
#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_costs_no_more_than_one() {
    let server = Server::start(&[]);
    let client = redis::Client::open(server.url()).unwrap();
    let deaf = client.get_multiplexed_async_connection().await.unwrap();
    let stores = [server.store().await, RedisStore::builder().with_connection(deaf).await.unwrap()];
    for (n, store) in stores.iter().enumerate() {
        let (name, first) = (n.to_string(), claim());
        granted(store, &key(&name), &first).await;
        let crowd: Vec<_> = (0..3_000)
            .map(|_| {
                let (store, key, holder) = (store.clone(), key(&name), first.claimant);
                tokio::spawn(async move { store.changed(&key, holder, MINUTE).await })
            })
            .collect();
        // The first look, and the time until the notification.
        sleep(Duration::from_millis(500)).await;
        server.tell("CONFIG RESETSTAT");
        let time = Duration::from_secs(5);
        sleep(time).await;
        let stats = server.tell("INFO commandstats");
        let calls = |command: &str| -> u64 {
            let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
            line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
        };
        let asked = calls("evalsha") + calls("getrange") + calls("get") + calls("set") + calls("subscribe");
        println!("{asked} commands in {time:?} for 3,000 who wait, those within scripts included");
        assert!(asked <= 10 * time.as_secs(), "{asked} commands");

        let began = Instant::now();
        store.settle(&key(&name), &settlement(&first)).await.unwrap();
        for waiter in crowd {
            timeout(MINUTE, waiter).await.unwrap().unwrap().unwrap();
        }
        println!("all are woken after {:?}", began.elapsed());
    }
}

/// Each claim of a key is waited for by itself.
#[tokio::test]
async fn who_waits_for_an_earlier_claim_is_not_kept_by_a_later_one() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let [first, second] = [claim(), claim()];
    granted(&store, &key("a"), &first).await;
    let early = waits(&store, "a", &first).await;
    assert!(matches!(store.release(&key("a"), &crate::release(&first)).await.unwrap(), Finished::Done));
    store.claim(&key("a"), &second).await.unwrap();
    timeout(MINUTE, early).await.unwrap().unwrap();
    let late = waits(&store, "a", &second).await;
    timeout(MINUTE, store.changed(&key("a"), first.claimant, MINUTE)).await.unwrap().unwrap();
    assert!(!late.is_finished());
    store.settle(&key("a"), &settlement(&second)).await.unwrap();
    timeout(MINUTE, late).await.unwrap().unwrap();
}

async fn name_of(server: &Server, key: &str) -> Vec<u8> {
    let mut connection = redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let names: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    names.into_iter().find(|name| name.ends_with(key.as_bytes())).unwrap()
}
