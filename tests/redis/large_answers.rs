//! Answers that are too large to pass through a script.

use std::{future::Future, time::Duration};

use redis::{
    Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use tower_idempotency::{
    RedisStore,
    store::{
        Binding, Claim, Claimed, Finished, Issue, Origin, RecordKey, Settlement, State, Store, StoreAdmin,
        StoreErrorKind,
    },
};

use crate::{MINUTE, claim, granted, is_near, key, server::Server};

const SIZES: [usize; 5] = [2047, 2048, 20_000, 65_536, 524_288];

fn large(claim: &Claim, size: usize) -> Settlement {
    let payload: Vec<u8> = (0..size).map(|n| u8::try_from(n * 7 % 251).unwrap()).collect();
    Settlement::new(claim.claimant, Some(payload.into()), MINUTE)
}

async fn connect(server: &Server) -> MultiplexedConnection {
    redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap()
}

async fn drafts(server: &Server) -> Vec<Vec<u8>> {
    redis::cmd("KEYS").arg("*:draft:*").query_async(&mut connect(server).await).await.unwrap()
}

async fn done(store: &RedisStore, key: &RecordKey, settlement: &Settlement) {
    let finished = store.settle(key, settlement).await.unwrap();
    assert!(matches!(finished, Finished::Done), "{finished:?}");
}

#[tokio::test]
async fn they_are_kept_with_all_that_belongs_to_the_record() {
    let server = Server::start(&[]);
    let store = server.store().await;
    for size in SIZES {
        for note in [&b""[..], b"a note \0 of some length"] {
            for token in [false, true] {
                let key = key(&format!("{size} {} {token}", note.len()));
                let mut first = claim();
                first.note = note.to_vec().into();
                if token {
                    let binding = Binding::new("checkout", Some("ann"));
                    store.issue(&key, &Issue::new(binding.clone(), MINUTE)).await.unwrap();
                    first.issued = Some(binding);
                }
                granted(&store, &key, &first).await;
                let before = store.inspect(&key).await.unwrap().unwrap();
                let settlement = large(&first, size);
                done(&store, &key, &settlement).await;

                let after = store.inspect(&key).await.unwrap().unwrap();
                assert_eq!((after.state, &after.payload), (State::Settled, &settlement.payload));
                assert_eq!((&after.note, &after.binding), (&before.note, &before.binding));
                assert_eq!((after.claimant, after.attempt), (first.claimant, 1));
                assert!(is_near(after.created, before.created), "{before:?} {after:?}");
                assert!(after.expires_in <= MINUTE && after.expires_in > MINUTE / 2);
                let mut again = claim();
                again.issued = first.issued.clone();
                assert_eq!(
                    store.claim(&key, &again).await.unwrap(),
                    Claimed::Settled(settlement.payload.clone(), Origin::NONE)
                );
            }
        }
    }
    assert!(drafts(&server).await.is_empty());
}

#[tokio::test]
async fn a_settlement_that_is_refused_leaves_no_draft() {
    let server = Server::start(&[]);
    let store = server.store().await;
    assert!(matches!(store.settle(&key("none"), &large(&claim(), 65_536)).await.unwrap(), Finished::Refused(None)));

    let first = claim();
    granted(&store, &key("a"), &first).await;
    match store.settle(&key("a"), &large(&claim(), 65_536)).await.unwrap() {
        Finished::Refused(Some(record)) => assert_eq!(record.claimant, first.claimant),
        finished => panic!("{finished:?}"),
    }
    // Its lease is alive.
    let finished = store.settle_as(&key("a"), first.claimant, &large(&claim(), 65_536)).await.unwrap();
    assert!(matches!(finished, Finished::Refused(Some(_))), "{finished:?}");
    done(&store, &key("a"), &large(&first, 65_536)).await;
    // What was settled with first stays.
    assert!(matches!(store.settle(&key("a"), &large(&first, 4096)).await.unwrap(), Finished::AlreadyDone));
    assert_eq!(
        store.claim(&key("a"), &claim()).await.unwrap(),
        Claimed::Settled(large(&first, 65_536).payload, Origin::NONE)
    );
    assert!(drafts(&server).await.is_empty());
}

#[tokio::test]
async fn one_settles_in_anothers_place() {
    let server = Server::start(&[]);
    let store = server.store().await;
    let first = Claim::new(Duration::ZERO, MINUTE);
    granted(&store, &key("a"), &first).await;
    let settlement = large(&claim(), 65_536);
    assert!(matches!(store.settle_as(&key("a"), first.claimant, &settlement).await.unwrap(), Finished::Done));
    assert!(matches!(store.settle_as(&key("a"), first.claimant, &settlement).await.unwrap(), Finished::AlreadyDone));
    assert!(matches!(store.settle(&key("a"), &large(&first, 65_536)).await.unwrap(), Finished::Refused(Some(_))));
    assert!(drafts(&server).await.is_empty());
}

/// Of many settlements of one claim, each with another answer, one is done, and its answer is whole.
#[tokio::test(flavor = "multi_thread")]
async fn settlements_at_once_do_not_mix() {
    let server = Server::start(&[]);
    let store = server.store().await;
    for round in 0..20 {
        let (first, key) = (claim(), key(&round.to_string()));
        granted(&store, &key, &first).await;
        let racers = (0..16).map(|n| {
            let (store, key, settlement) = (store.clone(), key.clone(), large(&first, 4096 + n));
            tokio::spawn(async move {
                let done = matches!(store.settle(&key, &settlement).await.unwrap(), Finished::Done);
                done.then_some(settlement.payload)
            })
        });
        let mut kept = Vec::new();
        for racer in racers.collect::<Vec<_>>() {
            kept.extend(racer.await.unwrap());
        }
        assert_eq!(kept.len(), 1);
        assert_eq!(store.claim(&key, &claim()).await.unwrap(), Claimed::Settled(kept.remove(0), Origin::NONE));
    }
    assert!(drafts(&server).await.is_empty());
}

#[tokio::test]
async fn a_server_that_has_forgotten_its_scripts_is_told_again() {
    let server = Server::start(&[]);
    let store = server.store().await;
    for n in 0..3 {
        server.tell("SCRIPT FLUSH");
        let (first, key) = (claim(), key(&n.to_string()));
        granted(&store, &key, &first).await;
        done(&store, &key, &large(&first, 65_536)).await;
    }
    assert!(drafts(&server).await.is_empty());
}

/// Lets the draft through and then breaks.
#[derive(Clone)]
struct Breaking(MultiplexedConnection);

impl ConnectionLike for Breaking {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        self.0.req_packed_command(command)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let first = pipeline.cmd_iter().next().cloned();
        if pipeline.len() == 2 && pipeline.get_packed_pipeline().windows(7).any(|part| part == b":draft:") {
            return Box::pin(async move {
                self.0.req_packed_command(&first.unwrap()).await?;
                Err(RedisError::from((ErrorKind::Io, "the process has died")))
            });
        }
        self.0.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}

#[tokio::test]
async fn the_draft_of_a_process_that_died_ends_by_itself() {
    let server = Server::start(&[]);
    let (store, mut connection) = (server.store().await, connect(&server).await);
    let dying = RedisStore::builder().with_connection(Breaking(connection.clone())).await.unwrap();
    let first = claim();
    granted(&store, &key("a"), &first).await;
    assert!(dying.settle(&key("a"), &large(&first, 65_536)).await.is_err());

    let left = drafts(&server).await;
    assert!(!left.is_empty());
    for draft in &left {
        let life: i64 = redis::cmd("PTTL").arg(draft).query_async(&mut connection).await.unwrap();
        assert!((1..=10_000).contains(&life), "{life}");
    }
    // Neither what is listed nor another's settlement minds it.
    assert_eq!(store.stats().await.unwrap().running, 1);
    done(&store, &key("a"), &large(&first, 65_536)).await;
    assert_eq!(drafts(&server).await.len(), left.len());
}

/// How many connections the server was asked for, that of the question included.
fn connections(server: &Server) -> u64 {
    let said = server.tell("INFO stats");
    said.lines().find_map(|line| line.strip_prefix("total_connections_received:")?.trim().parse().ok()).unwrap()
}

/// It is reported as final, so that a tombstone is left in its place, whether it is the server that refuses or the store. The
/// connection, which others use as well, is not lost on it.
#[tokio::test]
async fn an_answer_that_no_server_takes_is_too_large() {
    let server = Server::start(&["--proto-max-bulk-len", "1048576"]);
    let store = server.store().await;
    let before = connections(&server);
    for size in [1 << 20, 2 << 20, 64 << 20, (512 << 20) + 1] {
        let (first, key) = (claim(), key(&size.to_string()));
        granted(&store, &key, &first).await;
        // Pages that nobody writes to take no memory.
        let answer = Settlement::new(first.claimant, Some(vec![0; size].into()), MINUTE);
        let error = store.settle(&key, &answer).await.unwrap_err();
        assert_eq!((error.kind(), error.is_temporary()), (StoreErrorKind::TooLarge, false), "{size}: {error:?}");
        assert!(error.is_without_effect() && error.to_string().contains("response_limit"), "{size}: {error:?}");
        done(&store, &key, &Settlement::new(first.claimant, None, MINUTE)).await;
        assert_eq!(store.claim(&key, &claim()).await.unwrap(), Claimed::Settled(None, Origin::NONE));
    }
    assert_eq!(connections(&server), before + 1);
    assert!(drafts(&server).await.is_empty());
}

/// The largest answer that the server takes is kept, and so is the note that stands behind it, if both fit.
#[tokio::test]
async fn an_answer_that_just_fits_is_kept() {
    let server = Server::start(&["--proto-max-bulk-len", "1048676"]);
    let store = server.store().await;
    let before = connections(&server);
    let (limit, head) = (1_048_676, 107);
    for (size, note, fits) in [(limit - head, 0, true), (limit - head + 1, 0, false), (limit - head - 9, 10, false)] {
        let (mut first, key) = (claim(), key(&format!("{size}")));
        first.note = vec![7; note].into();
        granted(&store, &key, &first).await;
        let answer = Settlement::new(first.claimant, Some(vec![1; size].into()), MINUTE);
        match store.settle(&key, &answer).await {
            Ok(finished) => assert!(fits && matches!(finished, Finished::Done), "{size}: {finished:?}"),
            Err(error) => assert!(!fits && error.kind() == StoreErrorKind::TooLarge, "{size}: {error:?}"),
        }
    }
    assert_eq!(connections(&server), before + 1);
}

#[tokio::test]
async fn a_note_that_no_server_takes_is_too_large() {
    let server = Server::start(&["--proto-max-bulk-len", "1048576"]);
    let store = server.store().await;
    let before = connections(&server);
    let mut first = claim();
    first.note = vec![7; 2 << 20].into();
    let error = store.claim(&key("a"), &first).await.unwrap_err();
    assert_eq!((error.kind(), error.is_without_effect()), (StoreErrorKind::TooLarge, true), "{error:?}");
    assert_eq!(connections(&server), before + 1);
}

/// With the rights that sufficed before there were drafts, and with some of the further ones.
#[tokio::test]
async fn a_user_who_may_not_rename_settles_all_the_same() {
    let server = Server::start(&[]);
    let rule = include_str!("../../docs/redis.md").lines().find(|line| line.starts_with("ACL SETUSER")).unwrap();
    let less = [("~idem{*}:*", "~idem{}:*"), ("+rename ", ""), ("+strlen ", ""), ("+getbit ", "")];
    for (n, (right, instead)) in [("", "")].iter().chain(&less).enumerate() {
        let rule = if right.is_empty() { rule.to_owned() } else { rule.replace(right, instead) };
        assert!(server.tell("ACL DELUSER shop").starts_with(':') && server.tell(&rule).starts_with("+OK"));
        let url = server.url().replace("redis://", "redis://shop:password@");
        let store = RedisStore::connect(&url).await.unwrap();
        for size in [65_536, 2 << 20] {
            let (first, key) = (claim(), key(&format!("{n} {size}")));
            granted(&store, &key, &first).await;
            done(&store, &key, &large(&first, size)).await;
            let replayed = store.claim(&key, &claim()).await.unwrap();
            assert_eq!(replayed, Claimed::Settled(large(&first, size).payload, Origin::NONE), "{size} without {right}");
        }
    }
}

#[tokio::test]
async fn whoever_waits_is_woken() {
    let server = Server::start(&[]);
    let (store, first) = (server.store().await, claim());
    granted(&store, &key("a"), &first).await;
    let waiting = {
        let (store, holder) = (store.clone(), first.claimant);
        tokio::spawn(async move { store.changed(&key("a"), holder, MINUTE).await })
    };
    within(async {
        // The mark of a waiter.
        while !server.tell("INFO commandstats").contains("cmdstat_subscribe") {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        done(&store, &key("a"), &large(&first, 65_536)).await;
        waiting.await.unwrap().unwrap();
    })
    .await;
}

async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), what).await.unwrap()
}
