//! What is lost if a replica takes over, and what bounds it.

use std::time::Duration;

use axum::{Router, body::Body, http::Request, http::StatusCode, routing::post};
use tokio::time::sleep;
use tower::ServiceExt;
use tower_idempotency::{
    IdempotencyLayer,
    store::{Finished, Store},
};

use crate::{claim, granted, key, replays, server::Server, settled, settlement};

/// A master, and one that follows it.
fn pair(flags: &[&str]) -> (Server, Server) {
    let master = Server::start(flags);
    let (address, flags) = (format!("127.0.0.1 {}", master.port()), [flags, &["--repl-diskless-sync-delay", "0"]]);
    let replica = Server::start(&[&flags.concat()[..], &["--replicaof", &address]].concat());
    for _ in 0..600 {
        if master.tell("INFO replication").contains("state=online") && master.tell("SET written 1").starts_with("+OK") {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(master.is_confirmed_by(1, "confirmed"));
    (master, replica)
}

/// The master says that a record is kept before a replica has it. If it dies then, the record was never there: the
/// retry of a request that was answered runs again.
#[tokio::test]
async fn what_the_replica_had_not_received_runs_again() {
    let (mut master, replica) = pair(&[]);
    let store = master.store().await;
    settled(&store, &key("received")).await;
    let [claimed, late] = [claim(), claim()];
    granted(&store, &key("late"), &late).await;
    assert!(master.is_confirmed_by(1, "confirmed"));

    // It would connect again at once, so it has to stand still.
    replica.pause();
    master.tell("CLIENT KILL TYPE replica");
    settled(&store, &key("settled")).await;
    replays(&store, &key("settled")).await;
    granted(&store, &key("claimed"), &claimed).await;
    assert!(matches!(store.settle(&key("late"), &settlement(&late)).await.unwrap(), Finished::Done));
    master.kill();
    replica.resume();
    assert!(replica.tell("REPLICAOF NO ONE").starts_with("+OK"));

    let store = replica.store().await;
    replays(&store, &key("received")).await;
    for name in ["settled", "claimed"] {
        granted(&store, &key(name), &claim()).await;
    }
    // The claimant that ran meanwhile learns of it, and changes nothing.
    assert!(matches!(store.settle(&key("claimed"), &settlement(&claimed)).await.unwrap(), Finished::Refused(_)));
    // Of this the claim had been received, which is taken for one that still runs.
    assert!(matches!(store.settle(&key("late"), &settlement(&late)).await.unwrap(), Finished::Done));
}

/// `min-replicas-to-write` ends the time in which something can be lost: after the lag that is allowed nothing is
/// promised any more, and what was is replayed.
#[tokio::test]
async fn a_master_that_nobody_follows_takes_no_writes() {
    let (mut master, replica) = pair(&["--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"]);
    let app = Router::new().route("/pay", post(async || "paid")).layer(IdempotencyLayer::new(master.store().await));
    let pay = async |app: &Router, key: u32| {
        let request = Request::post("/pay").header("Idempotency-Key", key.to_string()).body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap().status()
    };
    assert_eq!(pay(&app, 0).await, StatusCode::OK);
    assert!(master.is_confirmed_by(1, "confirmed"));

    replica.pause();
    let mut last = 0;
    loop {
        match pay(&app, last + 1).await {
            StatusCode::OK => last += 1,
            status => break assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE),
        }
        assert!(last < 600, "the lag is not noticed");
        sleep(Duration::from_millis(50)).await;
    }
    for key in last + 1..last + 9 {
        assert_eq!(pay(&app, key).await, StatusCode::SERVICE_UNAVAILABLE);
    }
    // The lag may have run out between the claim and the settlement of the last one that was answered: its record waits
    // to be settled then.
    let kept = last.checked_sub(1).expect("the lag runs for seconds");
    assert_eq!((pay(&app, 0).await, pay(&app, kept).await), (StatusCode::OK, StatusCode::OK));
    assert!(matches!(pay(&app, last).await, StatusCode::OK | StatusCode::CONFLICT));

    // What takes over is bound by the same rule, so one replica is too few for it.
    master.kill();
    replica.resume();
    assert!(replica.tell("REPLICAOF NO ONE").starts_with("+OK"));
    let app = Router::new().route("/pay", post(async || "paid")).layer(IdempotencyLayer::new(replica.store().await));
    assert_eq!((pay(&app, 0).await, pay(&app, last + 1).await), (StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE));
}
