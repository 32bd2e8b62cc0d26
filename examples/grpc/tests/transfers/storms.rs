//! Thousands of calls through a wire that loses, delays and cuts.

use std::{env, time::Duration};

use grpc_transfers::{client, messages::Transfer};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tonic::{Status, transport::Channel};
use tonic_types::StatusExt;

use crate::{
    process::Options,
    stand::{Stand, Store},
};

/// Each breaks with all of the calls on it.
const CONNECTIONS: usize = 16;
const CALLS_AT_ONCE: usize = 4;
/// How long one call may take, with all its tries.
const PATIENCE: Duration = Duration::from_secs(120);

fn calls(usual: usize) -> usize {
    env::var("TRANSFERS").map_or(usual, |calls| calls.parse().unwrap())
}

/// What the clients have learned.
#[derive(Clone, Copy, Default)]
struct Sums {
    tries: u64,
    /// Calls whose end nobody knows.
    unknown: usize,
}

/// Sends all calls until each is answered.
async fn send(port: u16, calls: usize) -> Sums {
    let mut workers = JoinSet::new();
    for connection in 0..CONNECTIONS {
        let channel = Channel::from_shared(format!("http://127.0.0.1:{port}")).unwrap().connect_lazy();
        for worker in 0..CALLS_AT_ONCE {
            let (channel, first) = (channel.clone(), connection * CALLS_AT_ONCE + worker);
            workers.spawn(async move {
                let mut sums = Sums::default();
                for number in (first..calls).step_by(CONNECTIONS * CALLS_AT_ONCE) {
                    let transfer = Transfer { to: "ann".into(), amount: number as u64 + 1 };
                    match client::create(&channel, &format!("call-{number}"), &transfer, PATIENCE).await {
                        Ok(made) => sums.tries += u64::from(made.tries),
                        Err(status) if reason(&status) == "outcome-unknown" => sums.unknown += 1,
                        Err(status) => panic!("call {number}: {status:?}"),
                    }
                }
                sums
            });
        }
    }
    let add = |one: Sums, other: Sums| Sums { tries: one.tries + other.tries, unknown: one.unknown + other.unknown };
    workers.join_all().await.into_iter().fold(Sums::default(), add)
}

fn reason(status: &Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
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
    let options = Options { lease: Duration::from_secs(60), work: Duration::ZERO, at_most_once: false };
    let stand = Stand::new(store, options).await;
    let server = stand.start().await;
    stand.proxy.bad_weather(true);
    let began = Instant::now();
    let Sums { tries, unknown } = send(stand.proxy.port, calls).await;
    let (lost, cut) = stand.proxy.faults();
    println!("{calls} calls, {tries} tries, {lost} answers lost, {cut} requests cut, {:?}", began.elapsed());
    assert!(lost > 0 && cut > 0 && tries > calls as u64 && unknown == 0);
    assert_each_once(&stand, calls).await;
    assert_eq!(server.runs().await, calls);
}

/// The server is killed again and again, until all calls are answered.
async fn storm_with_kills(stand: &Stand, calls: usize) -> Sums {
    let mut server = stand.start().await;
    stand.proxy.bad_weather(true);
    let (began, mut sending) = (Instant::now(), tokio::spawn(send(stand.proxy.port, calls)));
    let mut kills = 0;
    let sums = loop {
        tokio::select! {
            sums = &mut sending => break sums.unwrap(),
            () = sleep(Duration::from_millis(700 + 130 * (kills % 5))) => {
                server.kill();
                server = stand.start().await;
                kills += 1;
            }
        }
    };
    let Sums { tries, unknown } = sums;
    println!("{calls} calls, {tries} tries, {kills} kills, {unknown} unknown, {:?}", began.elapsed());
    assert!(kills > 0);
    sums
}

const KILLED: Options = Options { lease: Duration::from_secs(2), work: Duration::from_millis(1), at_most_once: false };

/// A transaction is rolled back; with Redis an attempt after a crash asks the ledger first.
async fn each_once_though_servers_die(store: Store) {
    let calls = calls(2_000);
    let stand = Stand::new(store, KILLED).await;
    assert_eq!(storm_with_kills(&stand, calls).await.unknown, 0);
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
    each_once_though_servers_die(Store::Redis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_has_one_effect_on_postgres_though_servers_die() {
    each_once_though_servers_die(Store::Postgres).await;
}

/// What was begun and not recorded does not run again, and its client learns that.
#[tokio::test(flavor = "multi_thread")]
async fn at_most_once_on_redis_though_servers_die() {
    let calls = calls(2_000);
    let stand = Stand::new(Store::Redis, Options { at_most_once: true, ..KILLED }).await;
    let unknown = storm_with_kills(&stand, calls).await.unknown;
    let made = stand.made().await;
    assert!(made.values().all(|attempts| attempts.len() == 1), "none twice");
    assert!(made.len() + unknown >= calls, "each that was answered was made");
    assert!(unknown < calls / 2);
}
