//! Connections are cut, the server stands still, ends and begins again.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use tower_idempotency::{
    RedisStore,
    store::{Binding, Claimed, Finished, Issue, Issued, Origin, Renewed, Store, StoreAdmin, StoreErrorKind},
};

use crate::{MINUTE, claim, granted, key, release, replays, server::Server, settled, settlement};

/// Short, so that a test need not wait for long.
const LIMIT: Duration = Duration::from_millis(300);

async fn hasty(server: &Server) -> RedisStore {
    RedisStore::builder().connect_timeout(LIMIT).command_timeout(LIMIT).connect(&server.url()).await.unwrap()
}

#[tokio::test]
async fn a_cut_connection_is_not_seen_by_callers() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let first = claim();
    granted(&store, &key("a"), &first).await;
    for _ in 0..5 {
        server.cut();
        assert_eq!(store.renew(&key("a"), &first).await.unwrap(), Renewed::Done);
        server.cut();
        assert!(matches!(store.claim(&key("a"), &claim()).await.unwrap(), Claimed::Running { .. }));
    }
    server.cut();
    assert!(matches!(store.settle(&key("a"), &settlement(&first)).await.unwrap(), Finished::Done));
    server.cut();
    replays(&store, &key("a")).await;
}

#[tokio::test]
async fn a_server_that_stands_still_is_not_waited_for() {
    let server = Server::start(&[]);
    let store = hasty(&server).await;
    let first = claim();
    server.pause();
    for what in ["on the connection that there was", "on one that does not come about"] {
        let began = Instant::now();
        let error = store.claim(&key("a"), &first).await.unwrap_err();
        assert!(error.is_temporary(), "{what}: {error}");
        assert!(began.elapsed() < LIMIT * 6, "{what}: after {:?}", began.elapsed());
    }
    server.resume();
    let last = claim();
    granted(&store, &key("b"), &last).await;
}

#[tokio::test]
async fn a_claim_whose_caller_gave_up_is_recognised() {
    let server = Server::start(&[]);
    let (store, other) = (hasty(&server).await, server.store().await);
    let first = claim();
    server.pause();
    let error = store.claim(&key("a"), &first).await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Timeout, false));
    server.resume();
    // What was sent before the pause takes effect after it.
    let found = other.claim(&key("a"), &claim()).await.unwrap();
    assert!(matches!(found, Claimed::Running { holder, .. } if holder == first.claimant), "{found:?}");
    granted(&store, &key("a"), &first).await;
    assert!(matches!(store.release(&key("a"), &release(&first)).await.unwrap(), Finished::Done));
    assert!(matches!(store.release(&key("a"), &release(&first)).await.unwrap(), Finished::AlreadyDone));
}

#[tokio::test]
async fn what_was_saved_is_there_after_a_restart() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let store = hasty(&server).await;
    let running = claim();
    granted(&store, &key("running"), &running).await;
    settled(&store, &key("settled")).await;

    server.kill();
    let _ = store.claim(&key("new"), &claim()).await.unwrap_err();
    for _ in 0..3 {
        let began = Instant::now();
        let error = store.claim(&key("new"), &claim()).await.unwrap_err();
        assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, true), "{error:?}");
        assert!(began.elapsed() < LIMIT * 6, "after {:?}", began.elapsed());
    }

    server.start_again();
    replays(&store, &key("settled")).await;
    let found = store.claim(&key("running"), &claim()).await.unwrap();
    assert!(matches!(found, Claimed::Running { holder, .. } if holder == running.claimant), "{found:?}");
    // The scripts went with the server's memory.
    assert!(matches!(store.settle(&key("running"), &settlement(&running)).await.unwrap(), Finished::Done));
}

#[tokio::test]
async fn many_who_wait_for_a_connection_hear_soon_that_there_is_none() {
    let mut server = Server::start(&[]);
    let store = hasty(&server).await;
    server.kill();
    let began = Instant::now();
    let claims: Vec<_> = (0..200)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { store.claim(&key(&n.to_string()), &claim()).await.is_err() })
        })
        .collect();
    for claim in claims {
        assert!(claim.await.unwrap());
    }
    assert!(began.elapsed() < LIMIT * 10, "after {:?}", began.elapsed());
}

#[tokio::test]
async fn a_server_that_loads_its_data_is_away_for_so_long() {
    let mut server = Server::start(&[]);
    let store = hasty(&server).await;
    for n in 0..400 {
        settled(&store, &key(&n.to_string())).await;
    }
    server.tell("SAVE");
    server.kill();
    server.start_slowly(&["--key-load-delay", "4000", "--loading-process-events-interval-bytes", "1024"]);
    let mut loading = false;
    for _ in 0..200 {
        match store.claim(&key("7"), &claim()).await {
            Ok(claimed) => {
                assert_eq!(claimed, Claimed::Settled(Some("kept".into()), Origin::NONE));
                assert!(loading, "nobody saw it load");
                return;
            }
            Err(error) => {
                loading |= error.to_string().contains("loading");
                assert!(error.is_temporary(), "{error:?}");
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("it does not come to an end");
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let first = claim();
    let flush = || server.tell("SCRIPT FLUSH");
    flush();
    granted(&store, &key("a"), &first).await;
    flush();
    assert_eq!(store.renew(&key("a"), &first).await.unwrap(), Renewed::Done);
    flush();
    assert!(matches!(store.settle(&key("a"), &settlement(&first)).await.unwrap(), Finished::Done));
    flush();
    assert!(store.forget(&key("a")).await.unwrap());
}

#[tokio::test]
async fn a_connection_that_was_closed_while_nobody_used_it_is_noticed() {
    let server = Server::start(&[]);
    let store = server.store().await;
    for name in ["a", "b", "c"] {
        server.cut();
        // Time for the message that it is closed, no more.
        sleep(Duration::from_millis(100)).await;
        let issue = Issue::new(Binding::new("checkout", None), MINUTE);
        assert_eq!(store.issue(&key(name), &issue).await.unwrap(), Issued::Done);
    }
}

#[tokio::test]
async fn a_claim_on_which_the_server_ends_may_have_taken_effect() {
    let mut server = Server::start(&[]);
    let store = server.store().await;
    server.pause();
    let claiming = tokio::spawn({
        let store = store.clone();
        async move { store.claim(&key("a"), &claim()).await }
    });
    sleep(Duration::from_millis(200)).await;
    server.kill();
    let error = claiming.await.unwrap().unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::Unavailable, false), "{error:?}");
}
