//! What stands in the server.

use redis::aio::MultiplexedConnection;
use tower_idempotency::store::{
    Caller, Claimed, Filter, Finished, Origin, Release, Renewed, State, Store, StoreAdmin, StoreErrorKind,
};

use crate::{MINUTE, claim, granted, key, release, server::Server, settled, settlement, windows::windows_hold_and_end};

async fn connect(server: &Server) -> MultiplexedConnection {
    redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
}

async fn names(connection: &mut MultiplexedConnection) -> Vec<Vec<u8>> {
    redis::cmd("KEYS").arg("*").query_async(connection).await.unwrap()
}

#[tokio::test]
async fn a_record_of_a_later_version_is_never_matched_and_never_changed() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let first = claim();
    granted(&store, &key("a"), &first).await;
    let mut connection = connect(&server).await;
    let name = names(&mut connection).await.remove(0);
    let () = redis::cmd("SETRANGE").arg(&name).arg(0).arg(&b"\x03"[..]).query_async(&mut connection).await.unwrap();
    let before: Vec<u8> = redis::cmd("GET").arg(&name).query_async(&mut connection).await.unwrap();

    for claim in [&first, &claim()] {
        assert_eq!(store.claim(&key("a"), claim).await.unwrap(), Claimed::Incompatible);
        assert_eq!(store.renew(&key("a"), claim).await.unwrap(), Renewed::Lost);
        for finished in [
            store.settle(&key("a"), &settlement(claim)).await.unwrap(),
            store.release(&key("a"), &release(claim)).await.unwrap(),
            store.settle_as(&key("a"), first.claimant, &settlement(claim)).await.unwrap(),
        ] {
            assert!(matches!(finished, Finished::Refused(None)), "{finished:?}");
        }
    }
    assert_eq!(store.inspect(&key("a")).await.unwrap_err().kind(), StoreErrorKind::Corrupt);
    assert!(store.list(Filter::All, None, 10).await.unwrap().entries.is_empty());
    let after: Vec<u8> = redis::cmd("GET").arg(&name).query_async(&mut connection).await.unwrap();
    assert_eq!(after, before);
}

#[tokio::test]
async fn what_is_no_record_is_told_and_left_alone() {
    let server = Server::start(&[]);
    let store = server.store().await;
    settled(&store, &key("a")).await;
    let mut connection = connect(&server).await;
    let name = names(&mut connection).await.remove(0);
    for torn in [&b"\x02\x02"[..], b"\x01\x02", b"\0", b""] {
        let () = redis::cmd("SET").arg(&name).arg(torn).query_async(&mut connection).await.unwrap();
        assert_eq!(store.claim(&key("a"), &claim()).await.unwrap_err().kind(), StoreErrorKind::Corrupt, "{torn:?}");
    }
    let () = redis::cmd("DEL").arg(&name).query_async(&mut connection).await.unwrap();
    let () = redis::cmd("LPUSH").arg(&name).arg("x").query_async(&mut connection).await.unwrap();
    for kind in [
        store.claim(&key("a"), &claim()).await.unwrap_err().kind(),
        store.settle(&key("a"), &settlement(&claim())).await.unwrap_err().kind(),
        store.inspect(&key("a")).await.unwrap_err().kind(),
    ] {
        assert_eq!(kind, StoreErrorKind::Corrupt);
    }
    assert!(store.list(Filter::All, None, 10).await.unwrap().entries.is_empty());
}

/// What the layout keeps apart: whose claim the last one is, and who began.
#[tokio::test]
async fn a_caller_who_comes_later_leaves_the_origin_as_it_was() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let ann = Caller::from_parts(1, [0xa; 16]);
    let [nobody, mut named] = [claim(), claim()];
    named.caller = ann;
    granted(&store, &key("a"), &nobody).await;
    store.release(&key("a"), &release(&nobody)).await.unwrap();
    for undone in [true, false] {
        assert!(matches!(store.claim(&key("a"), &named).await.unwrap(), Claimed::Granted(_)));
        let running = store.inspect(&key("a")).await.unwrap().unwrap();
        assert_eq!((running.caller, running.caller_is_new, running.attempt), (ann, true, 2));
        assert_eq!(running.origin, Origin::NONE);
        let end = if undone { Release::undo(named.claimant, MINUTE) } else { release(&named) };
        assert!(matches!(store.release(&key("a"), &end).await.unwrap(), Finished::Done));
        assert!(matches!(store.release(&key("a"), &end).await.unwrap(), Finished::AlreadyDone));
        let released = store.inspect(&key("a")).await.unwrap().unwrap();
        let (caller, attempt) = if undone { (Caller::NONE, 1) } else { (ann, 2) };
        assert_eq!((released.state, released.caller, released.attempt), (State::Released, caller, attempt));
        assert_eq!((released.origin, released.claimant), (Origin::NONE, named.claimant));
        named.claimant = claim().claimant;
    }
}

#[tokio::test]
async fn names_are_readable_and_spread_over_a_cluster() {
    let server = Server::start(&[]);
    let store = server.store().await.namespace("shop");
    granted(&store, &key("7f0c"), &claim()).await;
    let name = names(&mut connect(&server).await).await.remove(0);
    let text = String::from_utf8_lossy(&name);
    assert!(text.starts_with("idem{}:4:shop:") && text.ends_with("/orders/{id}ann7f0c"), "{text}");
}

#[tokio::test]
async fn a_namespace_is_listed_among_many_others() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let (shop, other) = (store.namespace("shop"), store.namespace("sh*p"));
    for n in 0..500 {
        settled(&other, &key(&n.to_string())).await;
    }
    settled(&shop, &key("one")).await;
    for filter in [Filter::All, Filter::State(tower_idempotency::store::State::Settled)] {
        let (mut after, mut listed) = (None, Vec::new());
        loop {
            let page = shop.list(filter, after, 1).await.unwrap();
            listed.extend(page.entries.into_iter().map(|entry| entry.key));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(listed, [key("one")]);
    }
    assert_eq!((shop.stats().await.unwrap().settled, other.stats().await.unwrap().settled), (1, 500));
}

#[tokio::test]
async fn windows() {
    let server = Server::start(&[]);
    windows_hold_and_end(server.store().await).await;
}
