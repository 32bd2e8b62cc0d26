//! Thousands of calls through a wire that loses, delays and cuts.

use std::{env, sync::Arc, time::Duration};

use grpc_transfers::{client, messages::Transfer};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tonic::transport::Channel;

use crate::stand::{Stand, Store};

/// Each breaks with all of the calls on it.
const CONNECTIONS: usize = 16;
const CALLS_AT_ONCE: usize = 4;
/// How long one call may take, with all its tries.
const PATIENCE: Duration = Duration::from_secs(120);

fn calls(usual: usize) -> usize {
    env::var("TRANSFERS").map_or(usual, |calls| calls.parse().unwrap())
}

/// Sends all calls, and returns how many tries they took.
async fn send(port: u16, calls: usize) -> u64 {
    let mut workers = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let channel = Channel::from_shared(format!("http://127.0.0.1:{port}")).unwrap().connect_lazy();
        for worker in 0..CALLS_AT_ONCE {
            let (channel, first) = (channel.clone(), connection * CALLS_AT_ONCE + worker);
            workers.spawn(async move {
                let mut tries = 0;
                for number in (first..calls).step_by(CONNECTIONS * CALLS_AT_ONCE) {
                    let transfer = Transfer { to: "ann".into(), amount: number as u64 + 1 };
                    let made = client::create(&channel, &format!("call-{number}"), &transfer, PATIENCE).await;
                    tries += u64::from(made.unwrap_or_else(|status| panic!("call {number}: {status:?}")).tries);
                }
                tries
            });
        }
    }
    workers.join_all().await.into_iter().sum()
}

async fn assert_each_once(stand: &Stand, calls: usize) {
    let made = stand.made().await;
    assert_eq!(made.len(), calls);
    let twice: Vec<_> = made.iter().filter(|(_, attempts)| attempts.len() != 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// No process dies: each call runs once.
async fn storm(store: Store) {
    let calls = calls(10_000);
    let stand = Stand::new(store, Duration::from_secs(60), Duration::ZERO).await;
    let server = stand.start().await;
    stand.proxy.bad_weather(true);
    let began = Instant::now();
    let tries = send(stand.proxy.port, calls).await;
    let (lost, cut) = stand.proxy.faults();
    println!("{calls} calls, {tries} tries, {lost} answers lost, {cut} requests cut, {:?}", began.elapsed());
    assert!(lost > 0 && cut > 0 && tries > calls as u64);
    assert_each_once(&stand, calls).await;
    assert_eq!(server.runs(), calls);
}

/// The server is killed again and again. A transaction is rolled back; with Redis an attempt after a crash asks the
/// ledger first.
async fn storm_with_kills(store: Store) {
    let calls = calls(2_000);
    let stand = Arc::new(Stand::new(store, Duration::from_secs(2), Duration::from_millis(1)).await);
    let mut server = stand.start().await;
    stand.proxy.bad_weather(true);
    let (port, began) = (stand.proxy.port, Instant::now());
    let mut sending = tokio::spawn(send(port, calls));
    let mut kills = 0;
    let tries = loop {
        tokio::select! {
            tries = &mut sending => break tries.unwrap(),
            () = sleep(Duration::from_millis(700 + 130 * (kills % 5))) => {
                server.kill();
                server = stand.start().await;
                kills += 1;
            }
        }
    };
    println!("{calls} calls, {tries} tries, {kills} kills, {:?}", began.elapsed());
    assert!(kills > 0);
    assert_each_once(&stand, calls).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_one_effect_in_memory() {
    storm(Store::Memory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_one_effect_on_redis() {
    storm(Store::Redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_one_effect_on_postgres() {
    storm(Store::Postgres).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_one_effect_on_redis_though_servers_die() {
    storm_with_kills(Store::Redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_one_effect_on_postgres_though_servers_die() {
    storm_with_kills(Store::Postgres).await;
}
