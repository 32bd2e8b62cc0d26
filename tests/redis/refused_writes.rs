//! The server is there and takes no writes: what it keeps is replayed all the same.

use tower_idempotency::store::{Claimed, Finished, Renewed, Store, StoreErrorKind};

use crate::{claim, granted, key, replays, server::Server, settled, settlement};

/// Requests that need no write are answered; the others receive a refusal that had no effect.
async fn refuses(begin: &str, end: &str, kind: StoreErrorKind) {
    let server = Server::start(&[]);
    let store = server.store().await;
    settled(&store, &key("settled")).await;
    let running = claim();
    granted(&store, &key("running"), &running).await;
    assert_eq!(store.renew(&key("running"), &running).await.unwrap(), Renewed::Done);

    assert!(server.tell(begin).starts_with("+OK"));
    replays(&store, &key("settled")).await;
    let found = store.claim(&key("running"), &claim()).await.unwrap();
    assert!(matches!(found, Claimed::Running { holder, .. } if holder == running.claimant), "{found:?}");
    granted(&store, &key("running"), &running).await;
    for error in [
        store.claim(&key("new"), &claim()).await.unwrap_err(),
        store.settle(&key("running"), &settlement(&running)).await.unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.is_without_effect(), error.is_temporary()), (kind, true, true), "{error:?}");
    }
    let waited = store.changed(&key("running"), running.claimant, std::time::Duration::from_millis(100)).await;
    assert!(waited.is_ok(), "{waited:?}");

    assert!(server.tell(end).starts_with("+OK"));
    assert!(matches!(store.settle(&key("running"), &settlement(&running)).await.unwrap(), Finished::Done));
    granted(&store, &key("new"), &claim()).await;
}

#[tokio::test]
async fn a_server_out_of_memory_still_replays() {
    refuses("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0", StoreErrorKind::Full).await;
}

#[tokio::test]
async fn a_replica_still_replays() {
    refuses("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", StoreErrorKind::Unavailable).await;
}

#[tokio::test]
async fn with_too_few_replicas() {
    let (begin, end) = ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0");
    refuses(begin, end, StoreErrorKind::Unavailable).await;
}

#[tokio::test]
async fn a_claim_is_prolonged_though_there_is_no_memory() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let first = claim();
    granted(&store, &key("a"), &first).await;
    server.tell("CONFIG SET maxmemory 1");
    assert_eq!(store.renew(&key("a"), &first).await.unwrap(), Renewed::Done);
}
